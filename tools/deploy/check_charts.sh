#!/usr/bin/env bash
# check_charts.sh: renders deploy/helm/tactus with several settings, and judges it and deploy/kserve
# by the schemas of Kubernetes' own API and of the resources' own definitions (kubeconform,
# strictly), and by charts.py, which says what must hold between them. Exit code 77: not tried here,
# and why.
#
# helm and kubeconform are built from their Go modules, into .cache/go; the API's description and
# the definitions come in such modules too. Go verifies what it fetches.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() {
  echo "SKIPPED, NOTHING WAS TESTED: $1; remedy: $2" >&2
  exit 77
}
export PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || skip "there is no Go here" "install Go 1.23 or later"
python=
for each in python3 /usr/bin/python3; do
  ! "$each" -c 'import yaml' 2>/dev/null || { python=$each; break; }
done
[ -n "$python" ] || skip "Python reads no YAML here" "apt-get install python3-yaml"

cache=$PWD/.cache/go
export GOPATH=$cache/path GOBIN=$cache/bin GOFLAGS=-modcacherw
mkdir -p "$cache"
program() {  # NAME MODULE: builds it once
  [ -x "$GOBIN/$1" ] && return
  echo "== building $1" >&2
  nice go install "$2" >"$cache/$1.log" 2>&1 || {
    tail -n 3 "$cache/$1.log" >&2
    skip "$1 could not be built (log: .cache/go/$1.log)" "check the network and \`go env GOPROXY\`"
  }
}
module() {  # MODULE: prints its folder
  go mod download -json "$1" 2>>"$cache/modules.log" |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["Dir"])' 2>/dev/null ||
    skip "the module $1 could not be fetched (log: .cache/go/modules.log)" \
      "check the network and \`go env GOPROXY\`"
}
program kubeconform github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
program helm helm.sh/helm/v3/cmd/helm@v3.22.0
kubernetes=$(module k8s.io/kubernetes@v1.31.0)
prometheus=$(module github.com/prometheus-operator/prometheus-operator@v0.78.2)
keda=$(module github.com/kedacore/keda/v2@v2.16.1)
kserve=$(module github.com/kserve/kserve@v0.14.1)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -B tools/deploy/api_schemas.py "$kubernetes/api/openapi-spec/swagger.json" \
  "$work/schemas" \
  "$prometheus/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml" \
  "$keda/config/crd/bases/keda.sh_scaledobjects.yaml" \
  "$kserve/config/crd/full/serving.kserve.io_clusterservingruntimes.yaml"

helm=$GOBIN/helm chart=deploy/helm/tactus failed=0
as=(--kube-version 1.31.0)  # a helm that go built believes in an old one
"$helm" lint "${as[@]}" --strict --quiet "$chart" --set security.insecure=true
judge() {
  "$GOBIN/kubeconform" -strict -summary \
    -schema-location "$work/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$@" || failed=1
}

safe=security.tlsSecret=tls,security.tokensSecret=tokens,security.peerSecret=peer
declare -A settings=(
  [safe]="--set $safe"
  [insecure]="--set security.insecure=true"
  [partly]="--set security.insecure=true,security.tlsSecret=tls,scheduler.replicas=3"
  [scaled]="--set $safe,worker.kind=Deployment,worker.lanes=4,autoscaling.enabled=true
    --set monitoring.enabled=true,monitoring.tokenSecret.name=reader,monitoring.labels.team=a"
  [controller]="--set $safe,controller.enabled=true,controller.fleetConfigMap=fleet
    --set controller.authoritySecret=authority,networkPolicy.enabled=false"
  [spare]="--set $safe,controller.enabled=true,controller.fleetConfigMap=fleet
    --set controller.authoritySecret=authority,controller.replicas=2,controller.elect=postgresql
    --set controller.storeSecret=store,controller.leaseSeconds=2"
  [etcd]="--set $safe,controller.enabled=true,controller.fleetConfigMap=fleet
    --set controller.authoritySecret=authority,controller.replicas=3,controller.storeSecret=store
    --set controller.elect=etcd://etcd.db.svc:2379/street,controller.service.type=LoadBalancer"
  [everywhere]="--set $safe,worker.nodeSelector.pool=models,frontEnd.service.type=LoadBalancer
    --set frontEnd.service.annotations.a=b,image.pullSecrets={one},scheduler.policy=symphony
    --set worker.extraArgs={--default-slo-ms=50},clusterDomain=example.internal"
)
for name in "${!settings[@]}"; do
  # shellcheck disable=SC2086  # words
  "$helm" template "shop-$name" "$chart" "${as[@]}" --namespace models ${settings[$name]} \
    >"$work/$name.yaml"
  judge "$work/$name.yaml"
done
judge deploy/kserve/*.yaml

refused() {  # TEXT SETTING...: it must not be rendered, and say why
  local text=$1
  shift
  if "$helm" template shop "$chart" "${as[@]}" "$@" >/dev/null 2>"$work/error"; then
    echo "rendered, and should not be: $*" >&2
    failed=1
  elif ! grep -q -- "$text" "$work/error"; then
    cat "$work/error" >&2
    echo "refused without saying '$text': $*" >&2
    failed=1
  fi
}
refused 'security.tlsSecret is empty'
refused 'security.tokensSecret is empty' --set security.tlsSecret=a
refused 'security.peerSecret is empty' --set security.tlsSecret=a,security.tokensSecret=b
refused 'nobody scales a DaemonSet' --set $safe,autoscaling.enabled=true
refused 'needs monitoring.enabled' --set $safe,autoscaling.enabled=true,worker.kind=Deployment
refused 'fleetConfigMap is empty' --set $safe,controller.enabled=true
several=controller.enabled=true,controller.fleetConfigMap=a,controller.authoritySecret=b
several+=,controller.replicas=2
refused 'controller.elect is empty' --set $safe,$several
refused 'controller.storeSecret is empty' --set $safe,$several,controller.elect=postgresql
refused 'elect' --set $safe,$several,controller.elect=etcd://nowhere,controller.storeSecret=c
refused 'replicas' --set $safe,scheduler.replicas=0
refused 'frontend' --set $safe,frontend.replicas=3

"$python" -B tools/deploy/charts.py "$chart" .cache/promtool/promtool "$work"/*.yaml || failed=1
for program in build/package/apps/tactus build/release/apps/tactus; do
  [ -x "$program" ] || continue
  "$python" -B tools/deploy/chart_processes.py "$program" "$work/safe.yaml" models/ee_mlp ||
    failed=1
  "$python" -B tools/deploy/chart_controllers.py "$program" "$work/spare.yaml" examples/street ||
    failed=1
  started=yes
  break
done
[ -n "${started:-}" ] || echo "deploy: no program is built, so the chart's processes did not run"
[ $failed = 0 ] || { echo "deploy: FAILED" >&2; exit 1; }
echo "deploy: ${#settings[@]} settings rendered and judged, and what must be refused is"
