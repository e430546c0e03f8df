{{- define "stonetown.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "stonetown.selector" -}}
app.kubernetes.io/name: stonetown
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stonetown.labels" -}}
{{ include "stonetown.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* Numbers of values are floats, which would be printed as 1e+06. */ -}}
{{- define "stonetown.setting" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}
