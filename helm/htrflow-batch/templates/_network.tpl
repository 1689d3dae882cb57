{{/* The metadata of a NetworkPolicy: "root", "name" and "namespace". */}}
{{- define "htrflow.policyHead" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels: {{- include "htrflow.labels" .root | nindent 4 }}
{{- end -}}

{{/* One rule of egress: to "cidrs" at "ports", of the whole internet without the addresses "but". */}}
{{- define "htrflow.egressTo" -}}
{{- $internet := list "0.0.0.0/0" "::/0" -}}
{{- $but := .but | default list -}}
- to:
    {{- range $cidr := .cidrs }}
    - ipBlock:
        cidr: {{ $cidr | quote }}
        {{- if has $cidr $internet }}
        {{- $except := list }}
        {{- range $but }}
        {{- if and (eq (contains ":" .) (contains ":" $cidr)) (not (has . $internet)) }}{{ $except = append $except . }}{{ end }}
        {{- end }}
        {{- with $except }}
        except: {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- end }}
    {{- end }}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . | int }}}
    {{- end }}
{{- end -}}

{{- define "htrflow.egressToDns" -}}
- to: {{- toYaml .Values.network.dns | nindent 4 }}
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end -}}
