{{/*
The teams of the release as a JSON list, each with every key: those of `teams`, or the one that the release is. Refuses
what cannot work.
*/}}
{{- define "htrflow.teams" -}}
{{- $root := . -}}
{{- $own := dict "namespace" .Release.Namespace "argocd" (pick .Values.argocd "repoURL" "targetRevision" "path") -}}
{{- include "htrflow.fill" (dict "into" $own "from" (pick .Values "queue" "window" "sizes" "defaultSize" "quota" "dataPvc" "cache")) -}}
{{- $teams := list -}}
{{- range .Values.teams -}}
  {{- $team := deepCopy . -}}
  {{- $_ := set $team "queue" (.queue | default .namespace) -}}
  {{- include "htrflow.fill" (dict "into" $team "from" (pick $root.Values "window" "sizes" "defaultSize" "dataPvc" "cache")) -}}
  {{- include "htrflow.fill" (dict "into" $team "from" (pick $own "argocd")) -}}
  {{- $teams = append $teams $team -}}
{{- else -}}
  {{- $teams = list $own -}}
{{- end -}}
{{- include "htrflow.uniqueTeams" $teams -}}
{{- $teams | toJson -}}
{{- end -}}

{{- define "htrflow.uniqueTeams" -}}
{{- range $key := list "namespace" "queue" -}}
  {{- $seen := list -}}
  {{- range $ -}}
    {{- $value := get . $key -}}
    {{- if has $value $seen -}}
      {{- fail (printf "two teams have the %s %s — give each team its own" $key $value) -}}
    {{- end -}}
    {{- $seen = append $seen $value -}}
  {{- end -}}
{{- end -}}
{{- end -}}
