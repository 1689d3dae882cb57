{{/* A Kubernetes quantity as a number, in cores or bytes. */}}
{{- define "htrflow.amount" -}}
{{- $text := toString . -}}
{{- if kindIs "float64" . -}}{{- $text = printf "%f" . -}}{{- end -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $number := trimSuffix $unit $text | float64 -}}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 -}}
{{- $factors = merge $factors (dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0) -}}
{{- if not (hasKey $factors $unit) -}}
  {{- fail (printf "%s is no quantity that the chart knows — write a number, or one with m, k, M, G, T, P, Ki, Mi, Gi, Ti or Pi" $text) -}}
{{- end -}}
{{- mulf $number (get $factors $unit) -}}
{{- end -}}

{{/* A number or a quantity, as it stands in a quota. */}}
{{- define "htrflow.quantity" -}}
{{- if kindIs "float64" . -}}{{- regexReplaceAll "\\.?0+$" (printf "%.3f" .) "" | quote -}}
{{- else -}}{{- toString . | quote -}}{{- end -}}
{{- end -}}

{{/*
How many pods of "size" fit into the quota of "team" at once, with what the others of "teams" lend it: a whole number.
A size that names a flavor runs on that one; any other, and one whose flavor is unknown here, on the roomiest.
*/}}
{{- define "htrflow.fits" -}}
{{- $size := .size -}}{{- $team := .team -}}{{- $teams := .teams -}}{{- $cohort := .cohort -}}
{{- $most := 0 -}}
{{- range $row := $team.quota -}}
  {{- if or (not $size.flavor) (eq ($size.flavor | default "") $row.flavor) -}}
    {{- $pods := 2147483647 -}}
    {{- range $name := list "cpu" "memory" "gpu" -}}
      {{- $wanted := include "htrflow.amount" (get $size $name) | float64 -}}
      {{- if gt $wanted 0.0 -}}
        {{- $room := include "htrflow.amount" (get $row.nominal $name) | float64 -}}
        {{- $lent := 0.0 -}}
        {{- if $cohort -}}
          {{- range $other := $teams -}}
            {{- range $theirs := $other.quota -}}
              {{- if and (ne $other.namespace $team.namespace) (eq $theirs.flavor $row.flavor) -}}
                {{- $lent = addf $lent (include "htrflow.amount" (dig $name 0 ($theirs.lending | default dict)) | float64) -}}
              {{- end -}}
            {{- end -}}
          {{- end -}}
        {{- end -}}
        {{- $borrowed := include "htrflow.amount" (dig $name 0 ($row.borrowing | default dict)) | float64 -}}
        {{- $room = addf $room (minf $lent $borrowed) -}}
        {{- $pods = min $pods (divf $room $wanted | floor | int64) -}}
      {{- end -}}
    {{- end -}}
    {{- $most = max $most $pods -}}
  {{- end -}}
{{- end -}}
{{- $most -}}
{{- end -}}

{{/* Refuses quotas that name unknown flavors, and those in which a campaign would wait for ever. */}}
{{- define "htrflow.checkQuotas" -}}
{{- $root := . -}}
{{- $teams := include "htrflow.teams" . | fromJsonArray -}}
{{- $flavors := list -}}
{{- range .Values.flavors -}}{{- $flavors = append $flavors .name -}}{{- end -}}
{{- range $team := $teams -}}
  {{- $mine := list -}}
  {{- range $team.quota -}}
    {{- if not (has .flavor $flavors) -}}
      {{- fail (printf "the quota of %s names the flavor %s, which is not one of flavors (%s) — add it there" $team.namespace .flavor (join ", " $flavors)) -}}
    {{- end -}}
    {{- if has .flavor $mine -}}
      {{- fail (printf "the quota of %s names the flavor %s twice — write one row for each flavor" $team.namespace .flavor) -}}
    {{- end -}}
    {{- $mine = append $mine .flavor -}}
  {{- end -}}
  {{- $with := dict "team" $team "teams" $teams "cohort" (and $root.Values.teams $root.Values.cohort) -}}
  {{- range $name, $size := $team.sizes -}}
    {{- if and $size.flavor (not (has $size.flavor $mine)) -}}
      {{- fail (printf "the size %s runs on the flavor %s, of which %s has no quota — add a row for it to its quota" $name $size.flavor $team.namespace) -}}
    {{- end -}}
    {{- if lt (include "htrflow.fits" (merge (dict "size" $size) $with) | int) 1 -}}
      {{- fail (printf "not one pod of the size %s fits into the quota of %s — raise the quota, or make the size smaller" $name $team.namespace) -}}
    {{- end -}}
  {{- end -}}
  {{- $name := "of a pipeline without a size" -}}
  {{- $default := dict "cpu" 4 "memory" "8Gi" "gpu" 1 -}}
  {{- if $team.defaultSize -}}
    {{- if not (hasKey $team.sizes $team.defaultSize) -}}
      {{- fail (printf "defaultSize of %s is %s, which is not one of sizes — add it there" $team.namespace $team.defaultSize) -}}
    {{- end -}}
    {{- $name = printf "of the size %s" $team.defaultSize -}}
    {{- $default = get $team.sizes $team.defaultSize -}}
  {{- end -}}
  {{- $fits := include "htrflow.fits" (merge (dict "size" $default) $with) | int -}}
  {{- if lt $fits ($team.window | int) -}}
    {{- fail (printf "a campaign of %s asks for %d pods %s at once, and its quota has room for %d, so it would wait for ever — raise quota, or lower window here and in converter.yaml" $team.namespace ($team.window | int) $name $fits) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
