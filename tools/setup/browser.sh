#!/usr/bin/env bash
# browser.sh: Chromium without windows, in which the integration tests open the live page. Where it
# cannot be installed those tests are skipped.
source "$(dirname "$0")/lib.sh"

for name in chromium-headless-shell chromium google-chrome; do
  ! command -v "$name" >/dev/null || exit 0
done
say "installing chromium-headless-shell"
as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
  --no-install-recommends --no-remove chromium-headless-shell >"$cache/apt-chromium.log" 2>&1 ||
  say "not to be had (.cache/apt-chromium.log): tests of the live page will be skipped"
