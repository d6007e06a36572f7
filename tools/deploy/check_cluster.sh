#!/usr/bin/env bash
# check_cluster.sh [--json FILE] [--nodes N] [--settings A,B] [--server]: the chart on a real
# Kubernetes: kube-apiserver, kube-controller-manager, kube-scheduler, etcd, and kwok, which plays
# kubelets without containers on 1,000 nodes; with --server kube-apiserver and etcd alone. (Debian's
# etcd cannot say how far a watch has come: whoever watches would wait for seconds at each step.)
# check_cluster.py says what is asked of it.
# Exit code 77: not tried here, and why.
#
# All is built from Go modules, once, into .cache/go (2 GB), which takes about 10 minutes of
# processor time. Go keeps what it compiled in its own cache (3 GB; `go env GOCACHE`).
set -euo pipefail
cd "$(dirname "$0")/../.."

source tools/deploy/go_programs.sh
source tools/deploy/settings.sh
command -v openssl >/dev/null || skip "there is no openssl here" "apt-get install openssl"
export CGO_ENABLED=0
kubernetes=v1.37.2 kwok=v0.8.0 helm=v3.22.0

# Kubernetes is no module that others may require: it takes its parts from its own folders. This one
# takes the same parts as they were published. kwok and helm are in it, so that what they have in
# common is built once.
describe() {  # FOLDER: writes its go.mod
  local source
  source=$(module "k8s.io/kubernetes@$kubernetes") || exit
  mkdir -p "$1"
  {
    printf 'module tactus.invalid/cluster\n\ngo 1.26.0\n\ngodebug default=go1.26\n\nrequire (\n'
    printf '\tk8s.io/kubernetes %s\n\tsigs.k8s.io/kwok %s\n' $kubernetes $kwok
    printf '\thelm.sh/helm/v3 %s\n)\n\nreplace (\n' $helm
    sed -n "s,^\t\(k8s.io/[a-z-]*\) => ./staging/.*,\t\1 => \1 v0.${kubernetes#v1.},p" \
      "$source/go.mod"
    echo ')'
  } >"$1/go.mod"
}

build() {  # FOLDER PACKAGE...: their programs, in FOLDER/bin
  local folder=$1 version=k8s.io/component-base/version known each programs=()
  for each in "${@:2}"; do
    [ -x "$folder/bin/$(basename "${each%/v[0-9]}")" ] || programs+=("$each")
  done
  [ ${#programs[@]} != 0 ] || return 0
  describe "$folder"
  echo "== building ${programs[*]##*/}: about 10 minutes of processor time for all of them" >&2
  known=$(cd "$folder" && go list -mod=mod -deps "${programs[@]}" 2>"$folder/list.log" | wc -l) ||
    { tail -n 3 "$folder/list.log" >&2; skip "their modules could not be fetched" \
      "Go 1.26 or later, the network, and \`go env GOPROXY\`"; }
  mkdir -p "$folder/bin"
  # Helm and the server itself ask which version this is.
  local is="-X $version.gitVersion=$kubernetes -X $version.gitMajor=1"
  is+=" -X $version.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
  (cd "$folder" && GOGC=400 nice go build -mod=mod -v -trimpath -ldflags "-s -w $is" \
    -o bin/ "${programs[@]}") 2>&1 | tee "$folder/build.log" |
    awk -v all="$known" 'NR % 100 == 0 { print "   " NR " of at most " all; fflush() }' >&2 ||
    { tail -n 3 "$folder/build.log" >&2; skip "they could not be built (log: $folder/build.log)" \
      "Go 1.26 or later"; }
}

described=$(definitions)
stages=$(module "sigs.k8s.io/kwok@$kwok")/kustomize/stage
folder=$cache/kubernetes-$kubernetes-kwok-$kwok-helm-$helm
wanted=(go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver helm.sh/helm/v3/cmd/helm)
[[ " $* " == *" --server "* ]] || wanted+=(k8s.io/kubernetes/cmd/kube-{controller-manager,scheduler}
  sigs.k8s.io/kwok/cmd/kwok)
build "$folder" "${wanted[@]}"

for name in "${!settings[@]}"; do
  printf '%s\t%s\n' "$name" "${settings[$name]//$'\n'/ }"
done >"$folder/settings"
# shellcheck disable=SC2086  # a file a word
exec "$python" -B tools/deploy/check_cluster.py --programs "$folder/bin" \
  --etcd "$folder/bin/server" --stages "$stages" --settings-file "$folder/settings" \
  --definitions $described -- "$@"
