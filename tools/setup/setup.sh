#!/usr/bin/env bash
# setup.sh GROUP [--compile]: makes this machine ready for `./run GROUP` (build, demo or test).
# Group pipelines is for `./run demo pipelines` and street, group all for tests and benchmarks,
# groups video and postgres for `./run build video` and `./run build postgres`, group package for
# `./run package`, group gpu for `tactus serve --device cuda:0`. Installs what is missing and says
# what; takes a fraction of a second when nothing is. Downloads stay in .cache. With --compile, only
# Debian's packages and headers: `./run test` fetches the rest while it compiles.
here=$(dirname "$0")
source "$here/lib.sh"

group=${1:-build}
case $group in
  build | all | demo | pipelines | test | video | postgres | package | gpu) ;;
  *) fail "unknown group $group" \
    "build, all, demo, pipelines, test, video, postgres, package or gpu" ;;
esac

# Two set-ups at once (two terminals) would unpack over each other.
mkdir -p "$cache"
exec 9>"$cache/setup.lock"
flock --nonblock 9 || { say "waiting for another set-up to finish"; flock 9; }

bash "$here/apt.sh" "$group"
# Headers of an earlier version may lack some that are needed now.
if [ "$group" = test ] || [ "$group" = gpu ] || [ -d "$cache/cuda" ]; then bash "$here/cuda.sh"; fi
[ "${2:-}" != --compile ] || exit 0
bash "$here/onnxruntime.sh"
[ "$group" = demo ] || bash "$here/ocr.sh" # the demo's models are in the tree
[ "$group" != gpu ] || bash "$here/gpu.sh"
case $group in pipelines | test) bash "$here/street.sh" ;; esac
if [ "$group" = test ]; then
  bash "$here/python.sh"
  bash "$here/promtool.sh"
  bash "$here/etcd.sh"
  bash "$here/perf_analyzer.sh"
  bash "$here/browser.sh"
fi
