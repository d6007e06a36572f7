#!/usr/bin/env bash
# python.sh: the virtual environment of the integration tests, .cache/venv, with the packages of
# requirements.txt.
source "$(dirname "$0")/lib.sh"

list=$root/tools/setup/requirements.txt
venv=$cache/venv
version=$(sha256sum "$list" | cut -d' ' -f1)
is_complete "$venv" "$version" && exit 0

say "installing the Python clients into .cache/venv"
rm -rf "$venv"
mkdir -p "$cache"
python3 -m venv "$venv" || fail "python3 -m venv failed" "install the package python3-venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$list" \
  >"$cache/pip.log" 2>&1 || {
  tail -n 10 "$cache/pip.log" >&2
  fail "pip could not install the packages of tools/setup/requirements.txt" \
    "check the network and pip's configuration (\`pip config list\`), then run again"
}
mark_complete "$venv" "$version"
