#!/usr/bin/env bash
# docs.sh: mkdocs and what it needs (docs-requirements.txt), in .cache/docs, for `./run docs`.
source "$(dirname "$0")/lib.sh"

list=$root/tools/setup/docs-requirements.txt
venv=$cache/docs
version=$(sha256sum "$list" | cut -d' ' -f1)
is_complete "$venv" "$version" && exit 0

say "installing mkdocs into .cache/docs"
rm -rf "$venv"
mkdir -p "$cache"
python3 -m venv "$venv" || fail "python3 -m venv failed" "install the package python3-venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$list" \
  >"$cache/docs-pip.log" 2>&1 || {
  tail -n 10 "$cache/docs-pip.log" >&2
  fail "pip could not install the packages of tools/setup/docs-requirements.txt" \
    "check the network and pip's configuration (\`pip config list\`), then run again"
}
mark_complete "$venv" "$version"
