#!/usr/bin/env bash
# perf_analyzer.sh: .cache/perf_analyzer/run, a load generator that nobody here wrote.
#
# The wheel on PyPI carries a program that asks for glibc 2.38, and Debian 12 has 2.36. So the C and
# C++ libraries of Debian 13 are unpacked beside it (installed nowhere) and their dynamic loader
# starts it. When a step fails, the reason is left in .cache/perf_analyzer/why-not, and the tests
# that need the program say so and are skipped: nothing else depends on it.
source "$(dirname "$0")/lib.sh"

version=2.60.0
libraries=(libc6 libstdc++6 libgcc-s1 zlib1g libssl3t64)
target=$cache/perf_analyzer
log=$cache/perf_analyzer.log

give_up() {
  rm -rf "$target"
  mkdir -p "$target"
  echo "$1" >"$target/why-not"
  say "no perf_analyzer: $1 (log: ${log#"$root"/}); its tests will be skipped"
  exit 0
}

is_complete "$target" "$version" && exit 0
say "fetching perf_analyzer $version"
rm -rf "$target"
mkdir -p "$target/wheel" "$target/newer"
: >"$log"

case $(uname -m) in
  x86_64) wheel_sha=23ef56b107ae9233e5cf09fbdf508dd9b936a52f1bae2f63f53c8117087b3f25 ;;
  aarch64) wheel_sha=c2ece0adb7760ea1abc258222d80bf8e367fa9639401406b96da2c9b55131d29 ;;
  *) give_up "PyPI has no build of it for $(uname -m)" ;;
esac
"$cache/venv/bin/pip" download --disable-pip-version-check --no-deps --only-binary=:all: \
  --platform "manylinux_2_38_$(uname -m)" --dest "$target/wheel" "perf-analyzer==$version" \
  >>"$log" 2>&1 || give_up "pip could not download the package perf-analyzer $version"
wheel=$(echo "$target"/wheel/*.whl)
verify "$wheel" "$wheel_sha"
python3 -m zipfile --extract "$wheel" "$target/wheel"
program=$target/wheel/perf_analyzer/bin/perf_analyzer
chmod +x "$program"
mkdir -p "$target/bin"
mv "$program" "$target/bin/perf_analyzer"
rm -rf "$target/wheel"

have=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
if dpkg --compare-versions "$have" ge 2.38; then
  printf '#!/bin/sh\nexec "%s/bin/perf_analyzer" "$@"\n' "$target" >"$target/run"
else
  # An apt of its own (lists, cache, sources), so that the machine's apt never hears of Debian 13.
  # The archive's address is the one that the machine's own apt uses.
  mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && !found { print $1; found = 1 }')
  [ -n "$mirror" ] || give_up "apt's sources name no Debian 12 archive to find Debian 13 beside"
  apt=$target/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" \
    >"$apt/sources.list"
  own=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=-"
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "Acquire::Languages=none"
    -o "APT::Sandbox::User=")
  apt-get "${own[@]}" update >>"$log" 2>&1 || give_up "the lists of Debian 13 could not be read"
  (cd "$apt" && apt-get "${own[@]}" download "${libraries[@]}" >>"$log" 2>&1) ||
    give_up "the C and C++ libraries of Debian 13 could not be downloaded"
  for package in "$apt"/*.deb; do dpkg -x "$package" "$target/newer"; done
  rm -rf "$apt"
  loader=$(find "$target/newer/usr/lib" -name 'ld-linux*.so.*' -not -path '*/lib64/*' -print -quit)
  libs=$(dirname "$loader")
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s/bin/perf_analyzer" "$@"\n' \
    "$loader" "$libs" "$target" >"$target/run"
fi
chmod +x "$target/run"
# It has no --version that exits 0; a program that starts prints its usage.
grep -qi usage <<<"$("$target/run" 2>&1 || true)" || give_up "the program does not start here"
mark_complete "$target" "$version"
