{{/*
Fills .Values with the chart's defaults where they say nothing or null. A release that was upgraded with --reuse-values
from an older chart lacks the values that are newer than it. Every template begins with this.
*/}}
{{- define "htrflow.defaults" -}}
{{- include "htrflow.fill" (dict "into" .Values "from" (.Files.Get "files/defaults.json" | fromJson)) -}}
{{- end -}}

{{- define "htrflow.fill" -}}
{{- $into := .into -}}
{{- range $key, $default := .from -}}
  {{- if not (hasKey $into $key) -}}
    {{- $_ := set $into $key (deepCopy $default) -}}
  {{- else if kindIs "invalid" (get $into $key) -}}
    {{- $_ := set $into $key (deepCopy $default) -}}
  {{- else if and (kindIs "map" $default) (kindIs "map" (get $into $key)) -}}
    {{- include "htrflow.fill" (dict "into" (get $into $key) "from" $default) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{- define "htrflow.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* The site's address, without /results. */}}
{{- define "htrflow.site" -}}
{{- $url := required "resultsUrl is empty — set it to the address of the status site and /results, such as https://htr.example.org/results" .Values.resultsUrl -}}
{{- trimSuffix "/results" $url -}}
{{- end -}}

{{- define "htrflow.siteHost" -}}
{{- $authority := urlParse (include "htrflow.site" .) | dig "host" "" -}}
{{- regexReplaceAll ":[0-9]+$" $authority "" -}}
{{- end -}}

{{- define "htrflow.image" -}}
{{- required "site.image is empty — set it to the image of the status site with its digest, such as registry.example.org/htrflow-status@sha256:…" .Values.site.image -}}
{{- end -}}

{{- define "htrflow.sessionSecret" -}}
{{- .Values.results.sessionSecret | default "htrflow-session" -}}
{{- end -}}

{{/* The namespaces of all teams, with commas. */}}
{{- define "htrflow.namespaces" -}}
{{- $names := list -}}
{{- range include "htrflow.teams" . | fromJsonArray -}}
{{- $names = append $names .namespace -}}
{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{/* Pod Security "restricted", for the pods of the site. */}}
{{- define "htrflow.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "htrflow.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* What the pods of the site have in common. Takes the root as "root" and the pods' label `app` as "app". */}}
{{- define "htrflow.sitePod" -}}
enableServiceLinks: false
{{- with .root.Values.site.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.site.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.site.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: {{ .app }}}}
securityContext: {{- include "htrflow.podSecurity" . | nindent 2 }}
{{- end -}}

{{- define "htrflow.probes" -}}
readinessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: http}
  initialDelaySeconds: 20
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
{{- end -}}
