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

source tools/deploy/go_programs.sh
source tools/deploy/settings.sh
program kubeconform github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
program helm helm.sh/helm/v3/cmd/helm@v3.22.0
kubernetes=$(module k8s.io/kubernetes@v1.31.0)
described=$(definitions)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086  # a file a word
"$python" -B tools/deploy/api_schemas.py "$kubernetes/api/openapi-spec/swagger.json" \
  "$work/schemas" $described

helm=$GOBIN/helm chart=deploy/helm/tactus failed=0
as=(--kube-version 1.31.0)  # a helm that go built believes in an old one
"$helm" lint "${as[@]}" --strict --quiet "$chart" --set security.insecure=true
judge() {
  "$GOBIN/kubeconform" -strict -summary \
    -schema-location "$work/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$@" || failed=1
}

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
