#!/usr/bin/env bash
# browser.sh: Chromium without windows, in which the integration tests open the live page. Where it
# cannot be installed those tests are skipped. And axe-core, which looks there for what people with
# a screen reader or only a keyboard would miss; alone, out of the Python package that brings it.
source "$(dirname "$0")/lib.sh"

axe=axe-playwright-python==0.1.8
if ! is_complete "$cache/axe" "$axe"; then
  say "installing axe-core into .cache/axe"
  rm -rf "$cache/axe"
  if "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --target "$cache/axe" "$axe" >"$cache/pip-axe.log" 2>&1; then
    mark_complete "$cache/axe" "$axe"
  else
    say "not to be had (.cache/pip-axe.log): its tests of the live page will be skipped"
  fi
fi

for name in chromium-headless-shell chromium google-chrome; do
  ! command -v "$name" >/dev/null || exit 0
done
say "installing chromium-headless-shell"
as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
  --no-install-recommends --no-remove chromium-headless-shell >"$cache/apt-chromium.log" 2>&1 ||
  say "not to be had (.cache/apt-chromium.log): tests of the live page will be skipped"
