{{/* The allowed repositories as a JSON list. */}}
{{- define "htrflow.allowedRepositories" -}}
{{- if not .Values.policies.allowedRepositories -}}
{{- fail "policies.allowedRepositories is empty — name where images may come from, such as docker.io/riksarkivet" -}}
{{- end -}}
{{- .Values.policies.allowedRepositories | toJson -}}
{{- end -}}

{{/* Refuses an image of the status site that the policies would refuse, in a namespace where they hold. */}}
{{- define "htrflow.checkSite" -}}
{{- $values := .root.Values -}}
{{- if and $values.web.enabled (hasKey .queues .root.Release.Namespace) -}}
{{- $image := include "htrflow.image" .root -}}
{{- $repository := splitList "@" $image | first -}}
{{- $allowed := false -}}
{{- range include "htrflow.allowedRepositories" .root | fromJsonArray -}}
{{- if or (eq $repository .) (hasPrefix (printf "%s/" .) $repository) -}}
{{- $allowed = true -}}
{{- end -}}
{{- end -}}
{{- if not $allowed -}}
{{- fail (printf "site.image is %s, which policies.allowedRepositories does not allow in the namespace %s — add its repository, or take the image from there" $image .root.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The policy that looks for signatures. It is no file of policies/, since it asks the registry of each image. */}}
{{- define "htrflow.signaturePolicy" -}}
{{- $signatures := .root.Values.policies.signatures -}}
{{- $keyless := $signatures.keyless -}}
{{- if and $signatures.key $keyless.issuer -}}
{{- fail "policies.signatures has both a key and keyless.issuer — set one of them" -}}
{{- end -}}
{{- if not (or $signatures.key $keyless.issuer) -}}
{{- fail "policies.signatures is enabled and has neither a key nor keyless.issuer — set one of them" -}}
{{- end -}}
{{- if and $keyless.issuer (not (or $keyless.subject $keyless.subjectRegExp)) -}}
{{- fail "policies.signatures.keyless has an issuer and no subject, and anybody can sign with that issuer — set subject or subjectRegExp" -}}
{{- end -}}
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: htr-image-signatures
  labels: {{- include "htrflow.labels" .root | nindent 4 }}
  annotations:
    policies.kyverno.io/title: Images are signed
    policies.kyverno.io/category: Provenance
    policies.kyverno.io/severity: high
spec:
  validationActions: [{{ .root.Values.policies.action }}]
  failurePolicy: Fail
  autogen: {podControllers: {controllers: []}}
  webhookConfiguration: {timeoutSeconds: 30}
  matchConstraints:
    namespaceSelector: {{- toYaml .scope | nindent 6 }}
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE]
        resources: [pods]
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [UPDATE]
        resources: [pods/ephemeralcontainers]
  matchImageReferences:
    {{- if $signatures.repositories }}
    # By the name that a container runtime makes of it, so that no other spelling gets by.
    - expression: >-
        {{ toJson $signatures.repositories }}.exists(r, [
        (parseImageReference(ref).registry().lowerAscii() == 'index.docker.io' ? 'docker.io'
        : parseImageReference(ref).registry().lowerAscii()) + '/' + parseImageReference(ref).repository()
        ].exists(name, name == r || name.startsWith(r + '/')))
    {{- else }}
    - glob: "*"
    {{- end }}
  attestors:
    - name: cosign
      cosign:
        {{- if $signatures.key }}
        key:
          data: {{ toJson $signatures.key }}
        {{- else }}
        keyless:
          identities:
            - issuer: {{ $keyless.issuer | toJson }}
              {{- with $keyless.subject }}
              subject: {{ toJson . }}
              {{- end }}
              {{- with $keyless.subjectRegExp }}
              subjectRegExp: {{ toJson . }}
              {{- end }}
        {{- end }}
        {{- if not $signatures.transparencyLog }}
        ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}
        {{- end }}
  validationConfigurations: {mutateDigest: false, verifyDigest: true, required: true}
  validations:
    - expression: >-
        (images.containers + images.initContainers + images.ephemeralContainers)
        .all(image, verifyImageSignatures(image, [attestors.cosign]) > 0)
      messageExpression: >-
        'images without a signature of the trusted key or identity: '
        + (images.containers + images.initContainers + images.ephemeralContainers)
        .filter(image, verifyImageSignatures(image, [attestors.cosign]) == 0).distinct().join(', ')
        + ' — use an image that the build has signed'
{{- end -}}
