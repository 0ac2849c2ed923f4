{{/* Names, labels, and what Deployment and Job have in common. */}}
{{- define "tollgate.name" -}}
{{- if contains "tollgate" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-tollgate" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tollgate.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* tollgate.yaml: what is given, and over it what must fit the pods. */}}
{{- define "tollgate.config" -}}
{{- $secrets := "/run/secrets/tollgate" }}
{{- $set := dict
  "proxy" (dict "addr" (printf "%s:8080" .Values.listenHost))
  "admin" (dict "addr" (printf "%s:8081" .Values.listenHost))
  "metrics" (dict "addr" (printf "%s:9464" .Values.listenHost))
  "data_dir" "/var/lib/tollgate/data"
  "ledger" (dict "max_bytes" .Values.journal.maxBytes)
  "database" (dict "url_file" (printf "%s/database-url" $secrets))
  "redis" (dict "url_file" (printf "%s/redis-url" $secrets))
  "auth" (dict "admin_token_file" (printf "%s/admin-token" $secrets) "secret_key_file" (printf "%s/secret-key" $secrets))
  "shutdown" (dict "grace" (printf "%ds" (int .Values.graceSeconds)))
}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $set) }}
{{- end }}

{{- define "tollgate.pod" -}}
automountServiceAccountToken: false
# Otherwise each Service adds variables such as TOLLGATE_PORT, which look like settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "tollgate.container" -}}
image: {{ include "tollgate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}
