# Shared by the checks of the chart: programs and folders of Go modules, built and kept in
# .cache/go. Go verifies what it fetches. Sourced, from the root of the tree, never run.

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

# Definitions of the resources that are not Kubernetes' own, of the chart and deploy/kserve.
definitions() {
  local prometheus keda kserve
  prometheus=$(module github.com/prometheus-operator/prometheus-operator@v0.78.2) || exit
  keda=$(module github.com/kedacore/keda/v2@v2.16.1) || exit
  kserve=$(module github.com/kserve/kserve@v0.14.1) || exit
  echo "$prometheus/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
  echo "$keda/config/crd/bases/keda.sh_scaledobjects.yaml"
  echo "$kserve/config/crd/full/serving.kserve.io_clusterservingruntimes.yaml"
}
