#!/usr/bin/env bash
# check_wheel.sh WHEEL [SUITE...]: what a Python user does with the wheel, on a bare Debian in a
# folder (debootstrap, chroot), of each SUITE (bookworm and trixie): a virtual environment, pip, a
# server of a real model, a reply over HTTP and one by tactus.Client. The network is for pip alone,
# which goes where this machine's goes. Prints the seconds from pip to the replies and the sizes,
# which must be within 90 s and, beside what ONNX Runtime's package brings, 60 MB. Exit code 77: not
# tried here, and why.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/deploy/bare_debian.sh
may_make_bare_debian
most_seconds=90 most_mb=60
wheel=$1 name=${1##*/}
shift
[ $# -gt 0 ] || set -- bookworm trixie
root='' server=''

clear_away() {
  local folder
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  [ -n "$root" ] || return 0
  for folder in dev proc; do umount -l "$root/$folder" 2>/dev/null || true; done
  mountpoint -q "$root/proc" || rm -rf --one-file-system "$root" "$root.log"
}
leave() {
  local status=$?
  clear_away
  [ $status = 0 ] || echo "wheel: FAILED" >&2
}
trap leave EXIT

say() { printf '== %s\n' "$*"; }
fail() { printf 'wheel: %s\n' "$1" >&2; exit 1; }
inside() {  # [--exec] COMMAND...; with --exec in place of this shell, which is a subshell then
  local how=() settings
  [ "$1" != --exec ] || { how=(exec); shift; }
  mapfile -t settings < <(env | grep '^PIP_' | grep -v ^PIP_FIND_LINKS)  # a folder of this machine
  "${how[@]}" chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 "${settings[@]}" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
packages_mb() {  # PATTERN...: of the environment
  # shellcheck disable=SC2048,SC2086  # patterns of files there
  (cd "$root/venv/lib"/python3*/site-packages && shopt -s nullglob && du -smc $* | tail -n 1 |
    cut -f1)
}

make_machine() {  # SUITE
  root=$(mktemp -d "${TMPDIR:-/var/tmp}/tactus-wheel.XXXXXX")
  chmod 755 "$root"  # it is / of all who run in it
  bare_debian "$root" ca-certificates,python3-venv "$1" ||
    fail "debootstrap failed (log: $root.log)"
  [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  cp "$wheel" "$root/tmp/"
  mkdir "$root/models"
  cp -r models/ee_s "$root/models/"
  # Nothing is measured here, so nothing may be late.
  sed -i 's/\(slo_ms".*string_value: \)"[0-9]*"/\1"20000"/' "$root/models/ee_s/config.pbtxt"
}

# Leaves the server's process in `server` and its HTTP port in `port`.
install_and_serve() {
  local tries
  inside python3 -m venv /venv
  inside /venv/bin/pip --quiet --disable-pip-version-check install "/tmp/$name" ||
    fail "pip did not install it"
  inside --exec /venv/bin/tactus serve --models /models --http-port 0 --grpc-port 0 \
    --metrics-port 0 >"$root/tmp/log" 2>&1 &
  server=$!
  for ((tries = 0; tries < 1200; tries++)); do
    ! grep -q '^ready ' "$root/tmp/log" || break
    kill -0 $server 2>/dev/null || break
    sleep 0.1
  done
  port=$(sed -nE 's/^ready .*\bhttp=([0-9]+).*/\1/p' "$root/tmp/log")
  [ -n "$port" ] || { cat "$root/tmp/log" >&2; fail "the server did not start"; }
}

call() {
  inside /venv/bin/python - "http://127.0.0.1:$port" <<'PYTHON'
import json
import sys
import urllib.request
import numpy
import tactus

image = numpy.full((1, 1, 28, 28), 0.5, numpy.float32)
body = json.dumps({"inputs": [{"name": "input", "shape": image.shape, "datatype": "FP32",
                               "data": image.ravel().tolist()}]}).encode()
plain = json.load(urllib.request.urlopen(f"{sys.argv[1]}/v2/models/ee_s/infer", body, 60))
with tactus.Client(sys.argv[1], deadline_ms=20000) as client:
    answer = client.infer("ee_s", {"input": image})
assert answer.exit == plain["parameters"]["tactus_exit"], (answer.exit, plain)
assert numpy.allclose(answer["logits"].ravel(), plain["outputs"][0]["data"], 1e-3, 1e-4), plain
print(f"a reply over HTTP and one by tactus.Client: exit {answer.exit}, {answer.timing} ms")
PYTHON
}

check_on() {  # SUITE
  local began took own program status=0
  say "a bare Debian: $1"
  make_machine "$1"
  say "pip install $name"
  began=$(date +%s%N)
  install_and_serve
  call || fail "no reply"
  took=$(( ($(date +%s%N) - began) / 1000000000 ))
  program=$(readlink "/proc/$server/exe")
  case $program in
    */site-packages/tactus/bin/tactus) ;;
    *) fail "the process that was started is $program, not the program itself" ;;
  esac
  kill -TERM $server
  wait $server || status=$?
  server=''
  [ $status = 0 ] || fail "SIGTERM ended it with exit code $status"
  own=$(packages_mb 'tactus tactus-*')
  printf 'wheel: %s: %d s from pip to the replies (at most %d), %d MB installed (at most %d)' \
    "$1" "$took" $most_seconds "$own" $most_mb
  printf ' beside %d MB of ONNX Runtime and what it needs\n' \
    $(($(packages_mb .) - own - $(packages_mb 'pip* setuptools*')))
  [ "$took" -le $most_seconds ] && [ "$own" -le $most_mb ] || fail "a bar was missed"
  clear_away
  root=''
}

for suite in "$@"; do check_on "$suite"; done
cat <<TEXT
wheel: installed and served; $(du -m "$wheel" | cut -f1) MB to pass on
  python3 -m venv env && env/bin/pip install $wheel
  env/bin/tactus serve --models models      # docs/guide/python.md says how to call it
TEXT
