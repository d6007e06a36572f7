#!/usr/bin/env bash
# promtool.sh: .cache/promtool/promtool, which judges the metrics page in the integration tests. It
# is taken out of Debian's package `prometheus`, whose daemon a test machine has no use for.
source "$(dirname "$0")/lib.sh"

target=$cache/promtool
[ -x "$target/promtool" ] && exit 0
mkdir -p "$target"
if command -v promtool >/dev/null; then
  ln -sf "$(command -v promtool)" "$target/promtool"
  exit 0
fi
say "fetching promtool"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch() { (cd "$work" && apt-get -qq download prometheus >"$cache/apt-promtool.log" 2>&1); }
fetch || { as_root apt-get update >/dev/null 2>&1; fetch; } ||
  fail "apt-get could not download the package prometheus" \
    "see .cache/apt-promtool.log; or install promtool by hand"
dpkg -x "$work"/prometheus_*.deb "$work/files"
cp "$work/files/usr/bin/promtool" "$target/promtool"
