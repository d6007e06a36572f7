#!/usr/bin/env bash
# check_package.sh SUITE PACKAGE NEWER VIDEO: what a user does with the Debian package, on a bare
# Debian of the SUITE (bookworm or trixie) in a folder (debootstrap, chroot): install, within 90 s
# to a first reply, read the manual, complete a line, serve a model over HTTP as each unit says
# and as its user, stream a recording with the package VIDEO, upgrade to NEWER with settings and
# state kept, remove, purge, and nothing is left. All are .deb files of one build. Exit code 77:
# not tried here, and why.
#
# systemd does not run in a chroot. Its part is played by run_unit, which reads the unit's
# EnvironmentFile, ExecStart and User; `systemd-analyze verify` reads the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/deploy/bare_debian.sh

may_make_bare_debian
suite=$1 package=$2 newer=$3 video=$4 most_seconds=90
root=$(mktemp -d "${TMPDIR:-/var/tmp}/tactus-package.XXXXXX")
chmod 755 "$root"  # it is / of all who run in it
servers=()

leave() {
  local status=$?
  stop_all
  local folder
  for folder in dev proc; do umount -l "$root/$folder" 2>/dev/null || true; done
  mountpoint -q "$root/proc" || rm -rf --one-file-system "$root" "$root.before" \
    "$root.kept" "$root.log"
  [ $status = 0 ] || echo "package: FAILED" >&2
}
trap leave EXIT

say() { printf '== %s\n' "$*"; }
fail() { printf 'package: %s\n' "$1" >&2; exit 1; }
inside() {  # [--exec] COMMAND...; with --exec in place of this shell, which is a subshell then
  local how=()
  [ "$1" != --exec ] || { how=(exec); shift; }
  "${how[@]}" chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

make_machine() {
  bare_debian "$root" ca-certificates,curl,man-db "$suite" ||
    fail "debootstrap failed (log: $root.log)"
  # A minimal image keeps no manual pages unless it is told to.
  rm -f "$root"/etc/dpkg/dpkg.cfg.d/*
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  inside apt-get -qq update
}

# What is there and belongs to nobody else: to be the same before and after.
things() {
  (cd "$root" && find etc usr lib var -xdev \( -ipath '*tactus*' \) \
    -not -path 'var/log/*' -not -path 'var/cache/*' | sort)
  grep -c tactus "$root/etc/passwd" "$root/etc/group" | grep -v ':0$' || true
}

install_package() {
  cp "$1" "$root/tmp/tactus.deb"
  inside apt-get -qq install -y --no-install-recommends -o Dpkg::Use-Pty=0 /tmp/tactus.deb \
    >"$root/tmp/apt.log" 2>&1 || { tail -n 20 "$root/tmp/apt.log"; fail "$1 was not installed"; }
}

# start UNIT: its ExecStart, with its environment file, as its user, until the end of the check;
# its process is `started` and its output /tmp/UNIT.log.
start() {
  local read='
    unit=/lib/systemd/system/$0.service
    of() { sed -n "s/^$1=//p" "$unit"; }
    set -a; . "$(of EnvironmentFile)"; set +a
    eval "set -- $(of ExecStart)"
    cd "$(of WorkingDirectory)"
    exec setpriv --reuid="$(of User)" --regid="$(of Group)" --clear-groups --no-new-privs -- "$@"'
  : >"$root/tmp/$1.log"
  inside --exec /bin/sh -c "$read" "$1" >"$root/tmp/$1.log" 2>&1 &
  started=$!
  servers+=("$started")
  for ((tries = 0; tries < 240; tries++)); do
    ! grep -q '^ready ' "$root/tmp/$1.log" || break
    kill -0 "$started" 2>/dev/null || break
    sleep 0.25
  done
  grep -q '^ready ' "$root/tmp/$1.log" || { cat "$root/tmp/$1.log" >&2; fail "$1 did not start"; }
  [ "$(stat -c %u "/proc/$started")" = "$(inside id -u tactus)" ] || fail "$1 is not of its user"
}

stop_all() {
  local each
  for each in "${servers[@]}"; do kill "$each" 2>/dev/null || true; done
  for each in "${servers[@]}"; do wait "$each" 2>/dev/null || true; done
  servers=()
}

# told UNIT NAME: where it listens, of its ready line "ready http=8000 grpc=8001".
told() { sed -nE "s/^ready .*$2=([0-9]+).*/\1/p; s/^ready $2=([0-9]+).*/\1/p" "$root/tmp/$1.log"; }

# set_in UNIT NAME VALUE: as its administrator would, in its environment file.
set_in() { sed -i "s|^$2=.*|$2='$3'|" "$root/etc/tactus/$1.env"; }

infer() {  # PORT
  local answer
  answer=$(inside curl -sS --max-time 20 -H 'Content-Type: application/json' -d @/tmp/request.json \
    "http://127.0.0.1:$1/v2/models/ee_mlp/infer")
  grep -q '"outputs"' <<<"$answer" || fail "no inference: $answer"
}

# One server, as the unit `tactus` has it.
serve() {
  start tactus
  inside curl -fsS "http://127.0.0.1:$(told tactus http)/v2/health/ready" >/dev/null ||
    fail "the server is not ready"
  infer "$(told tactus http)"
  local page
  page=$(inside curl -fsS "http://127.0.0.1:$(told tactus metrics)/metrics")
  grep -q '^tactus_requests_total' <<<"$page" || fail "no metrics"
  stop_all
}

# A recording, streamed to the unit's server.
stream() {
  add_echo "$root/var/lib/tactus/models"
  cp examples/pipelines/street.mjpeg "$root/tmp/"
  start tactus
  inside tactus stream yard=/tmp/street.mjpeg --model echo --as-answered \
    --url "127.0.0.1:$(told tactus grpc)" >"$root/tmp/streamed" ||
    { tail -n 5 "$root/tmp/streamed" >&2; fail "no stream"; }
  has_all_frames "$root/tmp/streamed" || fail "not all of 40 frames were answered"
  stop_all
  rm -r "$root/var/lib/tactus/models/echo"
}

# A site of a scheduler, a worker and a front end.
serve_site() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  set_in tactus-scheduler TACTUS_LISTEN "127.0.0.1:$port"
  set_in tactus-scheduler TACTUS_SCHEDULERS "127.0.0.1:$port"
  set_in tactus-scheduler TACTUS_OPTIONS '--metrics-port 0'
  set_in tactus-front-end TACTUS_SCHEDULERS "127.0.0.1:$port"
  set_in tactus-front-end TACTUS_OPTIONS "$any_ports"
  set_in tactus TACTUS_OPTIONS "$any_ports --schedulers 127.0.0.1:$port"
  start tactus-scheduler
  start tactus
  start tactus-front-end
  infer "$(told tactus-front-end http)"
  stop_all
  set_in tactus TACTUS_OPTIONS "$any_ports"
}

# A controller and one node of its fleet.
serve_cluster() {
  cp examples/street/fleet.toml "$root/etc/tactus/"
  set_in tactus-controller TACTUS_LISTEN 127.0.0.1:0
  start tactus-controller
  local control
  control=127.0.0.1:$(told tactus-controller control)
  set_in tactus-agent TACTUS_CONTROLLER "$control"
  set_in tactus-agent TACTUS_NODE north
  cp -r examples/street/models "$root/var/lib/tactus/street"
  set_in tactus-agent TACTUS_MODELS /var/lib/tactus/street
  start tactus-agent
  local said tries
  local serves='^ *north +alive +[0-9]+\.[0-9]+ +yes' said tries
  for ((tries = 0; tries < 240; tries++)); do  # its hello, and a plan's roll-out
    said=$(inside tactus cluster status --controller "$control")
    ! grep -Eq "$serves" <<<"$said" || break
    sleep 0.25
  done
  grep -Eq "$serves" <<<"$said" || fail "the node serves no plan: $said"
  stop_all
}

say "a bare Debian, $suite"
make_machine
things >"$root.before"

say "install $(basename "$package")"
SECONDS=0
install_package "$package"
installed=$SECONDS
inside tactus --version
inside man -P cat tactus-serve >"$root/tmp/manual" 2>&1
grep -q -- --model-control-mode "$root/tmp/manual" || fail "no manual page of tactus serve"
inside bash -c '. /usr/share/bash-completion/completions/tactus
  COMP_WORDS=(tactus se) COMP_CWORD=1; _tactus; [ "${COMPREPLY[*]}" = serve ]' ||
  fail "bash does not complete tactus se"
inside tactus check --help >/dev/null
cp -r models/ee_mlp "$root/var/lib/tactus/models/"
# Nothing is measured here, so nothing may be late.
sed -i 's/\(slo_ms".*string_value: \)"[0-9]*"/\1"20000"/' \
  "$root/var/lib/tactus/models/ee_mlp/config.pbtxt"
python3 - >"$root/tmp/request.json" <<'P'
import json
print(json.dumps({'inputs': [{'name': 'input', 'shape': [1, 1, 28, 28], 'datatype': 'FP32',
                              'data': [0.5] * 784}]}))
P
any_ports='--http-port 0 --grpc-port 0 --metrics-port 0'
set_in tactus TACTUS_OPTIONS "$any_ports"

say "serve: one machine"
SECONDS=0
serve
say "$((installed + SECONDS)) s from apt to a reply (bar $most_seconds)"
[ $((installed + SECONDS)) -le $most_seconds ] || fail "that is too long"
say "serve: a site of three processes"
serve_site
say "serve: a controller and an agent"
serve_cluster
for kept in controller/controller.state agent/node.state; do
  [ -s "$root/var/lib/tactus/$kept" ] || fail "there is no $kept"
done

say "streams: $(basename "$video")"
! inside tactus stream yard=/tmp/none.mjpeg --model echo 2>"$root/tmp/without" ||
  fail "it reads video without the package"
grep -q 'install the package tactus-video' "$root/tmp/without" || fail "it names no remedy"
install_package "$video"
stream
inside apt-get -qq remove -y tactus-video >/dev/null 2>&1

say "upgrade to $(basename "$newer")"
find "$root/var/lib/tactus" "$root/etc/tactus" -type f -exec sha256sum {} + | sort >"$root.kept"
install_package "$newer"
find "$root/var/lib/tactus" "$root/etc/tactus" -type f -exec sha256sum {} + | sort |
  diff "$root.kept" - || fail "the upgrade changed settings or state"
[ "$(inside dpkg-query -W -f '${Version}' tactus)" = "$(dpkg-deb -f "$newer" Version)" ] ||
  fail "the newer version is not installed"
serve

say "remove, then purge"
inside apt-get -qq remove -y tactus >/dev/null 2>&1
[ ! -e "$root/usr/bin/tactus" ] || fail "remove left the program"
[ -e "$root/etc/tactus/tactus.env" ] && [ -d "$root/var/lib/tactus/models/ee_mlp" ] ||
  fail "remove took settings or models"
inside apt-get -qq purge -y tactus >/dev/null 2>&1
things | diff "$root.before" - || fail "purge left something"
echo "package: installed, served, streamed, upgraded, removed and purged on $suite"
