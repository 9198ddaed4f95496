{{- define "svc-agent.labels" -}}
app.kubernetes.io/part-of: svc-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The values of this chart, also where another chart that depends on it includes a template. */}}
{{- define "svc-agent.values" -}}
{{- if hasKey .Values "clusterAgent" }}{{ toYaml .Values }}{{ else }}{{ toYaml (index .Values "svc-agent") }}{{ end }}
{{- end }}

{{/* image: a map with repository, tag, digest; version: what an empty tag means */}}
{{- define "svc-agent.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .version }}
{{- end }}
{{- end }}

{{- define "svc-agent.securityContext" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end }}

{{- define "svc-agent.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: SVC_CLUSTER
  value: {{ .cluster | quote }}
{{- end }}

{{- define "svc-agent.ports" -}}
- name: svc-agent
  containerPort: 9464
{{- end }}

{{- define "svc-agent.livenessProbe" -}}
httpGet:
  path: /health
  port: svc-agent
periodSeconds: 30
timeoutSeconds: 5
failureThreshold: 5
{{- end }}

{{- define "svc-agent.readinessProbe" -}}
httpGet:
  path: /ready
  port: svc-agent
periodSeconds: 10
timeoutSeconds: 5
{{- end }}

{{/*
The agent beside a role, for initContainers of the role's pod, whose labels are app.kubernetes.io/component (the role)
and svc-agent/placement: sidecar. It has no startupProbe and no readinessProbe: a role never waits for its agent.
*/}}
{{- define "svc-agent.sidecar" -}}
{{- $values := include "svc-agent.values" . | fromYaml }}
- name: svc-agent
  image: {{ include "svc-agent.image" (dict "image" $values.image "version" "1.0.0") }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  restartPolicy: Always
  env:
    - name: SVC_AGENT_ROLES
      valueFrom:
        fieldRef:
          fieldPath: metadata.labels['app.kubernetes.io/component']
    {{- include "svc-agent.env" $values | nindent 4 }}
  ports:
    {{- include "svc-agent.ports" . | nindent 4 }}
  livenessProbe:
    {{- include "svc-agent.livenessProbe" . | nindent 4 }}
  resources:
    {{- toYaml $values.sidecar.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    {{- include "svc-agent.securityContext" . | nindent 4 }}
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
    - name: svc-agent-config
      mountPath: /etc/svc-agent
      readOnly: true
    - name: svc-agent-state
      mountPath: /var/lib/svc-agent
{{- end }}

{{- define "svc-agent.sidecarVolumes" -}}
- name: svc-agent-config
  configMap:
    name: svc-agent-sidecar
- name: svc-agent-state
  emptyDir:
    sizeLimit: 64Mi
{{- end }}
