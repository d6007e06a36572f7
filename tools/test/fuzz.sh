#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...]: runs each libFuzzer target for SECONDS (60), one
# on each core, from the seeds in tests/fuzz_corpus/TARGET and from what earlier runs found worth
# keeping (its corpus). A finding is kept in its findings and fails all.
set -uo pipefail
cd "$(dirname "$0")/../.."

build=build/asan-ubsan
seconds=${1:-60}
[ $# -gt 0 ] && shift
case $seconds in '' | *[!0-9]*) echo "seconds must be a number, not $seconds" >&2; exit 2 ;; esac
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for program in $build/fuzzers/*; do
    [ -x "$program" ] && targets+=("$(basename "$program")")
  done
fi
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz target is built: ./run fuzz builds them" >&2; exit 1; }
for target in "${targets[@]}"; do
  [ -x "$build/fuzzers/$target" ] || { echo "there is no fuzz target $target" >&2; exit 2; }
done

# run TARGET: fuzzes it, prints what came of it in one piece, and fails if there is a finding.
run() {
  local target=$1 program=$build/fuzzers/$1 corpus=$build/corpus/$1 log=$build/$1.log seeds=() runs
  mkdir -p "$corpus"
  [ -d "tests/fuzz_corpus/$target" ] && seeds=("tests/fuzz_corpus/$target")
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$build/findings/$target-" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    runs=$(grep -oE 'Done [0-9]+ runs' "$log" | grep -oE '[0-9]+')
    echo "ok $target: ${runs:-?} inputs, $(ls "$corpus" | wc -l) worth keeping"
    return 0
  fi
  local told='ERROR|SUMMARY|runtime error|CHECK\(|Test unit written|^Base64|^    #[0-9] '
  printf '%s\n' "FINDING in $target:" "$(grep -E "$told" "$log" | head -n 20)" \
    "  again: $program $(sed -n 's/.*Test unit written to //p' "$log" | head -n 1)"
  return 1
}

mkdir -p $build/findings
cores=$(nproc)
turns=$(((${#targets[@]} + cores - 1) / cores))
echo "${#targets[@]} targets, ${seconds} s each, $cores at a time: $((turns * (seconds + 1))) s"
bad=0 running=0
for target in "${targets[@]}"; do
  if [ $running = "$cores" ]; then
    wait -n || bad=1
    running=$((running - 1))
  fi
  run "$target" &
  running=$((running + 1))
done
while [ $running -gt 0 ]; do
  wait -n || bad=1
  running=$((running - 1))
done
all=0
for target in "${targets[@]}"; do
  runs=$(grep -oE 'Done [0-9]+ runs' "$build/$target.log" 2>/dev/null | grep -oE '[0-9]+')
  all=$((all + ${runs:-0}))
done
echo "$all inputs in all"
exit $bad
