{{/* What the templates share: names, labels, and the parts of a pod that all roles have. */}}

{{- define "tactus.name" -}}
{{- if contains "tactus" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-tactus" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* (dict "root" $ "role" "worker") */}}
{{- define "tactus.selector" -}}
app.kubernetes.io/name: tactus
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "tactus.labels" -}}
{{ include "tactus.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "tactus.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* HOST:PORT of every scheduler with commas, in the order in which they take over. The name is the
one that a StatefulSet's pod has in its own /etc/hosts, so it can listen there at once. */}}
{{- define "tactus.schedulers" -}}
{{- $service := printf "%s-scheduler" (include "tactus.name" .) -}}
{{- $list := list -}}
{{- range $i := until (int .Values.scheduler.replicas) -}}
{{- $list = append $list (printf "%s-%d.%s.%s.svc.%s:8100" $service $i $service $.Release.Namespace $.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $list -}}
{{- end }}

{{/* Refuses what would be open to strangers by oversight. */}}
{{- define "tactus.check" -}}
{{- with .Values.security -}}
{{- if not .insecure -}}
{{- if not .tlsSecret }}{{ fail "security.tlsSecret is empty: name a TLS Secret for clients, or set security.insecure where the network keeps strangers out" }}{{ end -}}
{{- if not .tokensSecret }}{{ fail "security.tokensSecret is empty: name a Secret with the key tokens, or set security.insecure where the network keeps strangers out" }}{{ end -}}
{{- if not .peerSecret }}{{ fail "security.peerSecret is empty: name a Secret of `tactus cluster certificate`, or set security.insecure where the network keeps strangers out" }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (ne .Values.worker.kind "Deployment") }}{{ fail "autoscaling.enabled needs worker.kind Deployment: nobody scales a DaemonSet" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (not .Values.monitoring.enabled) }}{{ fail "autoscaling.enabled needs monitoring.enabled: KEDA asks Prometheus what is measured" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}{{ fail "autoscaling.minReplicas is above maxReplicas" }}{{ end -}}
{{- if and .Values.controller.enabled (not .Values.controller.fleetConfigMap) }}{{ fail "controller.fleetConfigMap is empty: name a ConfigMap with fleet.toml" }}{{ end -}}
{{- if and .Values.controller.enabled (not .Values.controller.authoritySecret) }}{{ fail "controller.authoritySecret is empty: name a Secret with the files of `tactus cluster init`" }}{{ end -}}
{{- with .Values.controller -}}
{{- if and .enabled (gt (int .replicas) 1) (not .elect) }}{{ fail "controller.elect is empty: with several controllers name postgresql or etcd://HOST:PORT/CLUSTER" }}{{ end -}}
{{- if and .enabled .elect (not .storeSecret) }}{{ fail "controller.storeSecret is empty: controllers that are elected share a database, name a Secret with its uri" }}{{ end -}}
{{- end -}}
{{- end }}

{{/* HOST:PORT of every controller with commas, for agents in this cluster. */}}
{{- define "tactus.controllers" -}}
{{- $list := list -}}
{{- range $i := until (int .Values.controller.replicas) -}}
{{- $list = append $list (printf "%s-controller-%d.%s.svc.%s:7400" (include "tactus.name" $) $i $.Release.Namespace $.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $list -}}
{{- end }}

{{/* --insecure only where something is missing. */}}
{{- define "tactus.open" -}}
{{- with .Values.security }}{{ if not (and .tlsSecret .tokensSecret .peerSecret) }}yes{{ end }}{{ end }}
{{- end }}

{{- define "tactus.peerArgs" -}}
{{- if .Values.security.peerSecret }}
- --peer-tls=/etc/tactus/peer
{{- end }}
{{- end }}

{{/* Where clients and Prometheus come: front ends and workers. */}}
{{- define "tactus.portArgs" -}}
- --address=0.0.0.0
- --grace-seconds=20
{{- if .Values.security.tlsSecret }}
- --tls-cert=/etc/tactus/tls/tls.crt
- --tls-key=/etc/tactus/tls/tls.key
{{- end }}
{{- if .Values.security.tokensSecret }}
- --tokens=/etc/tactus/tokens/tokens
{{- end }}
{{- if include "tactus.open" . }}
- --insecure
{{- end }}
{{- end }}

{{/* A folder is mounted, not a file: files of a Secret are replaced in place, and read again. */}}
{{- define "tactus.secretMounts" -}}
{{- if .Values.security.tlsSecret }}
- {name: tls, mountPath: /etc/tactus/tls, readOnly: true}
{{- end }}
{{- if .Values.security.tokensSecret }}
- {name: tokens, mountPath: /etc/tactus/tokens, readOnly: true}
{{- end }}
{{- end }}

{{- define "tactus.secretVolumes" -}}
{{- with .Values.security.tlsSecret }}
- {name: tls, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.security.tokensSecret }}
- {name: tokens, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- end }}

{{- define "tactus.peerMount" -}}
{{- if .Values.security.peerSecret }}
- {name: peer, mountPath: /etc/tactus/peer, readOnly: true}
{{- end }}
{{- end }}

{{- define "tactus.peerVolume" -}}
{{- with .Values.security.peerSecret }}
- {name: peer, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- end }}

{{/* Health on the metrics port: a thread and a listener of its own, and no token (docs/reference/security.md). */}}
{{- define "tactus.healthProbes" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.security.tlsSecret "") -}}
startupProbe:   # a worker loads models, and measures them without a profile, before its ports open
  httpGet: {path: /v2/health/live, port: metrics, scheme: {{ $scheme }}}
  periodSeconds: 2
  failureThreshold: 300
livenessProbe:
  httpGet: {path: /v2/health/live, port: metrics, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /v2/health/ready, port: metrics, scheme: {{ $scheme }}}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{/* Of a process without HTTP: that its port takes connections, no more. */}}
{{- define "tactus.tcpProbes" -}}
livenessProbe:
  tcpSocket: {port: {{ . }}}
  periodSeconds: 10
  failureThreshold: 3
readinessProbe:
  tcpSocket: {port: {{ . }}}
  periodSeconds: 5
  failureThreshold: 2
{{- end }}

{{- define "tactus.podSecurity" -}}
runAsNonRoot: true
runAsUser: 64000
runAsGroup: 64000
fsGroup: 64000
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tactus.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "tactus.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* (dict "root" $ "role" "scheduler"): not two of a kind on one machine, if it can be avoided. */}}
{{- define "tactus.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "tactus.selector" . | nindent 8 }}
{{- end }}
