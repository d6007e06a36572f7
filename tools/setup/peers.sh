#!/usr/bin/env bash
# peers.sh: the servers that `./run bench peers` measures beside ours: Triton (triton.sh), and each
# of tools/setup/peers in a virtual environment of its own, .cache/peers/NAME. One that cannot
# be had is skipped: .cache/peers/NAME.skipped says why, and the benchmark prints it.
source "$(dirname "$0")/lib.sh"
mkdir -p "$cache/peers"

# install NAME: its environment. One that was interrupted has no stamp and is made anew.
install() {
  local list=$root/tools/setup/peers/$1.txt venv=$cache/peers/$1 version
  version=$(sha256sum "$list" | cut -d' ' -f1)
  is_complete "$venv" "$version" && return
  say "installing $1 into .cache/peers/$1"
  rm -rf "$venv"
  python3 -m venv "$venv" || fail "python3 -m venv failed" "install the package python3-venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: --no-deps \
    --requirement "$list" >"$cache/peers/$1.log" 2>&1 ||
    fail "pip could not install $1: $(tail -n 1 "$cache/peers/$1.log")" \
      "check the network and pip's configuration (\`pip config list\`), then run again"
  mark_complete "$venv" "$version"
}

# try NAME COMMAND...: a peer that is not there stops none of the others.
try() {
  local name=$1 why=$cache/peers/$1.skipped
  shift
  if ("$@") 2>"$why.now"; then
    rm -f "$why" "$why.now"
  else
    mv "$why.now" "$why"
    say "skipping $name: $(head -n 1 "$why")"
  fi
}

# Networks with weights that are drawn, for the mix of two models.
version=$(sha256sum "$root/models/resnets.py" | cut -d' ' -f1)
if ! is_complete "$cache/peers/resnets" "$version"; then
  rm -rf "$cache/peers/resnets"
  "$cache/venv/bin/python" "$root/models/resnets.py" --out "$cache/peers/resnets" >/dev/null
  mark_complete "$cache/peers/resnets" "$version"
fi
try triton bash "$root/tools/setup/triton.sh"
for list in mlserver.txt litserve.txt bentoml.txt ray.txt; do
  try "${list%.txt}" install "${list%.txt}"
done
