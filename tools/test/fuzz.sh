#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...]: runs each libFuzzer target of build/fuzz for SECONDS (60), from the
# seeds in tests/fuzz_corpus/TARGET and from what earlier runs found worth keeping
# (build/fuzz/corpus). A finding is kept in build/fuzz/findings and fails the run.
set -uo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
[ $# -gt 0 ] && shift
case $seconds in '' | *[!0-9]*) echo "seconds must be a number, not $seconds" >&2; exit 2 ;; esac
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for program in build/fuzz/fuzzers/*; do
    [ -x "$program" ] && targets+=("$(basename "$program")")
  done
fi
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz target is built: ./run fuzz builds them" >&2; exit 1; }

findings=build/fuzz/findings
mkdir -p "$findings"
bad=0
echo "${#targets[@]} targets, ${seconds} s each: about $((${#targets[@]} * (seconds + 1))) s"
for target in "${targets[@]}"; do
  program=build/fuzz/fuzzers/$target
  [ -x "$program" ] || { echo "there is no fuzz target $target" >&2; exit 2; }
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds=()
  [ -d "tests/fuzz_corpus/$target" ] && seeds=("tests/fuzz_corpus/$target")
  log=build/fuzz/$target.log
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$findings/$target-" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    runs=$(grep -oE 'Done [0-9]+ runs' "$log" | grep -oE '[0-9]+')
    echo "ok $target: ${runs:-?} inputs, $(ls "$corpus" | wc -l) worth keeping"
  else
    bad=1
    echo "FINDING in $target:"
    grep -E 'ERROR|SUMMARY|runtime error|Test unit written|^    #[0-9] ' "$log" | head -n 20
    echo "  again: $program $(sed -n 's/.*Test unit written to //p' "$log" | head -n 1)"
  fi
done
exit $bad
