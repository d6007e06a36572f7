#!/usr/bin/env bash
# stages.sh [STAGE...]: the stages of `./run test`. Each test is compiled once:
#   unit         the modules' tests, under AddressSanitizer and UndefinedBehaviorSanitizer (clang)
#   fuzz         ten seconds of each fuzz target, of the same build
#   tsan         the tests of modules with threads, under ThreadSanitizer
#   program      the program's commands and package, and tests that need optimised code (release)
#   integration  the program as a server, with real clients (release)
#   lint         style, arrows, headers, format
# All of them when none is named; `all` is all of them, with every header and benchmark instead of
# those that changed. Two rows of steps run side by side: the release is built first and tested,
# which is mostly waiting; what needs sanitizers is built and tested beside that, at the lowest
# priority. Keeps every step's output in build/logs; ends with `N passed, N failed` on a line of its
# own.
set -uo pipefail
cd "$(dirname "$0")/../.."

jobs=$(nproc)
logs=build/logs
times=.cache/step-seconds  # what each step took on this machine the last time
export NINJA_STATUS='[%f/%t] '
source tools/test/ccache.sh

# Only what has threads: ThreadSanitizer has nothing to say about the rest. Debian's libgrpc and
# libprotobuf are built without it. So not tests with a client of gRPC: what it passes from thread
# to thread looks like a race, thousands of times (unit runs them). Nor server_kserve, which has no
# thread: libprotobuf and a program with ThreadSanitizer disagree about the layout of a map.
# Nor whatever test of the knowledge base starts servers and has no thread of its own.
threaded='base|dispatch|engines|knowledge|runtime|bench_shards|load|server_(grpc|http|metrics|net)'

build() {  # PRESET TARGET...
  bash tools/test/configure.sh "$1" && ninja -C "build/$1" -j "$jobs" "${@:2}"
}

run_ctest() {  # PRESET ARGUMENT...
  ctest --test-dir "build/$1" --output-on-failure --no-tests=error "${@:2}"
}

# What fails is tried once more: real threads and processes beside a build meet every delay there
# is. The summary names what held only then. What a sanitizer reports stays a failure.
run_twice() {  # PRESET ARGUMENT...
  local log=build/$1/Testing/Temporary/LastTest.log
  run_ctest "$1" --repeat until-pass:2 "${@:2}" || return
  ! grep -E '(ERROR|WARNING): [A-Z][A-Za-z]+Sanitizer|: runtime error: ' "$log"
}

wanted() { [[ " $stages " == *" $1 "* ]]; }

# What each step does. STAGES are those that were asked for.
run_step() {
  local labels targets
  case $1 in
    build-release)
      # Headers that are generated are among those that are checked, or are included.
      ! wanted lint || targets+=(tactus_proto tactus_site_proto tactus_control_proto)
      ! wanted program ||
        targets+=(tactus tactus_demo tactus_package_files tactus_bench_gpu tactus_program_tests)
      ! wanted integration || targets+=(tactus tactus_street_link tactus_bench_gpu)
      build release "${targets[@]}"
      ;;
    tests-release)
      ! wanted lint || labels+=(lint)
      ! wanted program || labels+=(program)
      ! wanted integration || labels+=(integration)
      # One test more than there are processors: those of integration wait more than they compute.
      # RESOURCE_LOCK, where the tests are declared, keeps apart those that must not be together.
      run_twice release -j $((jobs + 1)) \
        -L "^($(IFS='|'; echo "${labels[*]}"))\$"
      ;;
    set-up) bash tools/setup/setup.sh test ;;
    format) ./run format --check ;;
    build-asan)
      ! wanted unit || targets+=(tactus_tests)
      ! wanted fuzz || targets+=(tactus_fuzzers)
      build asan-ubsan "${targets[@]}"
      ;;
    unit)
      export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
      export LSAN_OPTIONS=suppressions=$PWD/tools/test/leaks.supp
      run_twice asan-ubsan -j "$jobs"
      ;;
    build-tsan)
      bash tools/test/configure.sh tsan || return
      mapfile -t targets < <(ninja -C build/tsan -t targets all |
        grep -oE "/tactus_($threaded)_test: CXX_EXECUTABLE" | cut -d: -f1 | sed 's,.*/,,' | sort -u)
      build tsan "${targets[@]}"
      ;;
    tsan)
      export TSAN_OPTIONS="suppressions=$PWD/tools/test/races.supp history_size=7 halt_on_error=1"
      run_twice tsan -j "$jobs" -L "^($threaded)$" \
        -E 'Grpc|^MakeTransport|/(Sqlite|Postgres|Etcd|File) |^Crash'
      ;;
    fuzz) bash tools/test/fuzz.sh 10 ;;
  esac
}

if [ "${1:-}" = --step ]; then
  stages=$3
  run_step "$2"
  exit
fi

# The steps that STAGE needs, each with the seconds it takes from nothing on two cores. A step
# begins when the one before it in its row has ended. One whose build or set-up failed is left out.
steps_of() {
  case $1 in
    unit) echo "set-up:60 build-asan:820 unit:420" ;;
    fuzz) echo "build-asan:820 fuzz:150" ;;
    tsan) echo "set-up:60 build-tsan:200 tsan:95" ;;
    program | integration) echo "set-up:60 build-release:480 tests-release:360" ;;
    lint) echo "set-up:60 build-release:480 tests-release:360 format:5" ;;
    *) return 1 ;;
  esac
}
declare -A rows=([set-up]=set-up [release]='build-release tests-release format'
  [sanitizers]='build-asan unit build-tsan tsan fuzz')
declare -A needs=([tests-release]='build-release set-up' [unit]='build-asan set-up'
  [fuzz]=build-asan [tsan]='build-tsan set-up')

every='unit program integration lint tsan fuzz'
stages="${*:-$every}"
[ "$stages" != all ] || { stages=$every; export TACTUS_COMPILE_ALL=1; }
stages=${stages/asan/unit}  # its name when unit tests ran without sanitizers too
mkdir -p "$logs" .cache
touch "$times"
declare -A expected left
for stage in $stages; do
  steps=$(steps_of "$stage") || {
    echo "there is no stage $stage; the stages are $every, or all" >&2
    exit 2
  }
  for entry in $steps; do
    step=${entry%:*}
    known=$(awk -v step="$step" '$1 == step { seconds = $2 } END { print seconds }' "$times")
    expected[$step]=${known:-${entry#*:}}
  done
done
for row in set-up release sanitizers; do
  for step in ${rows[$row]}; do
    [ -z "${expected[$step]:-}" ] || left[$row]+="$step "
  done
done

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

passed=0 failed=0 skipped=0
failures=()
unsteady=() # tests that failed and held when they were tried again
declare -A pid step_of started broken

fail() {  # STEP [TESTS]: counts it as one failure, or as so many
  local tests=${2:-1}
  failed=$((failed + (tests > 0 ? tests : 1)))
  failures+=("$1")
}

# What a step came to, from its status and its log.
count() {  # STEP STATUS
  local log=$logs/$1.log summary unrun targets
  case $1 in
    build-*)
      [ "$2" = 0 ] && return
      broken[$1]=1
      fail "$1"
      grep -E -A 12 'error:|FAILED:|CMake Error' "$log" | head -n 60
      ;;
    set-up)
      cat "$log"  # what it has installed, or why it could not
      [ "$2" = 0 ] && return
      broken[$1]=1
      fail "$1"
      ;;
    format)
      if [ "$2" = 0 ]; then passed=$((passed + 1)); else fail format; tail -n 20 "$log"; fi
      ;;
    fuzz)
      targets=$(grep -c '^ok ' "$log")
      passed=$((passed + targets))
      [ "$2" = 0 ] && return
      fail fuzz
      grep -vE '^ok ' "$log" | tail -n 40
      ;;
    *)  # ctest. No test at all is a failure.
      summary=$(grep -E '^[0-9]+% tests passed' "$log")
      if [[ $summary =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
        # ctest counts what was skipped among what passed.
        unrun=$(grep -c '\*\*\*Skipped' "$log")
        passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1] - unrun))
        skipped=$((skipped + unrun))
        unsteady+=($(awk '/Test +#/ && /\*\*\*(Failed|Timeout|Exception)/ { failed[name($0)] = 1 }
          /Test +#.* Passed / && failed[name($0)] { print name($0) }
          function name(line) {
            sub(/.*Test +#[0-9]+: /, "", line); sub(/ .*/, "", line); return line
          }
          ' "$log"))
        [ "$2" = 0 ] && return
        fail "$1" "${BASH_REMATCH[1]}"
      else
        fail "$1"
      fi
      grep -E 'Failure$|: Failure|SUMMARY: |ERROR: |Error: |remedy|^\s+[0-9]+ - ' "$log" |
        head -n 60
      ;;
  esac
}

# Nothing of the sanitizers' row runs beside the release's build: both would only share the
# processors. No test runs before the set-up is done.
must_wait() {  # ROW STEP
  [[ $1 = sanitizers && ${step_of[release]:-} = build-release && -n ${pid[release]:-} ]] ||
    [[ " ${needs[${2:-none}]:-} " == *" set-up "* && -n ${pid[set-up]:-} ]]
}

begin() {  # ROW: starts its next step, if there is one that can
  local row=$1 step need can priority=()
  [ "$row" != sanitizers ] || priority=(nice -n 19)
  while [ -n "${left[$row]:-}" ]; do
    step=${left[$row]%% *}
    must_wait "$row" "$step" && return
    left[$row]=${left[$row]#* }
    can=1
    for need in ${needs[$step]:-}; do [ -z "${broken[$need]:-}" ] || can=; done
    [ -n "$can" ] || continue
    # A process group of its own, so that an interrupt ends all of it (see stop).
    setsid "${priority[@]}" bash "$0" --step "$step" "$stages" \
      >"$logs/$step.log" 2>&1 </dev/null &
    pid[$row]=$! step_of[$row]=$step started[$row]=$SECONDS
    return
  done
}

end() {  # ROW: what ran in it has ended
  local row=$1 step=${step_of[$1]} status seconds=$((SECONDS - started[$1]))
  wait "${pid[$row]}"
  status=$?
  unset "pid[$row]"
  [ -t 1 ] && printf '\r\033[K'
  if [ $status = 0 ]; then
    { grep -v "^$step " "$times"; echo "$step $seconds"; } >"$times.new"
    mv "$times.new" "$times"
    printf 'ok      %-14s %s\n' "$step" "$(clock $seconds)"
  else
    printf 'FAILED  %-14s %s (whole output: %s)\n' "$step" "$(clock $seconds)" "$logs/$step.log"
  fi
  count "$step" $status
}

# The seconds that a row still takes, by what its steps took the last time.
seconds_left() {  # ROW
  local sum=0 step rest
  if [ -n "${pid[$1]:-}" ]; then
    rest=$((${expected[${step_of[$1]}]} - SECONDS + started[$1]))
    sum=$((rest > 5 ? rest : 5))  # it takes longer than the last time, nobody knows how much
  fi
  for step in ${left[$1]:-}; do sum=$((sum + expected[$step])); done
  echo "$sum"
}

seconds_to_go() {
  local release sanitizers
  release=$(seconds_left release)
  sanitizers=$(seconds_left sanitizers)
  if [ -n "${left[sanitizers]:-}" ] && must_wait sanitizers ''; then
    sanitizers=$((sanitizers + expected[build-release] - SECONDS + started[release]))
  fi
  echo $((release > sanitizers ? release : sanitizers))
}

show_progress() {
  local row line='' what
  for row in set-up release sanitizers; do
    [ -n "${pid[$row]:-}" ] || continue
    what=$(grep -oE '^\[[0-9]+/[0-9]+\]|^ *[0-9]+/[0-9]+ Test' "$logs/${step_of[$row]}.log" |
      tail -n 1 | tr -d ' []Test')
    line+="${step_of[$row]} $(clock $((SECONDS - started[$row])))${what:+ ($what)}; "
  done
  line="  ${line}all $(clock $((SECONDS - began))), about $(clock "$(seconds_to_go)") to go"
  if [ -t 1 ]; then printf '\r\033[K%s' "${line:0:$(tput cols 2>/dev/null || echo 80)}"; else
    printf '%s\n' "$line"
  fi
}

stop() {
  for group in "${pid[@]}"; do kill -- "-$group" 2>/dev/null; done
  echo "interrupted"
  exit 130
}
trap stop INT TERM HUP

began=$SECONDS
commit=$(git rev-parse HEAD 2>/dev/null)
pause=150  # in fifths of a second, between two lines
[ -t 1 ] && pause=5
cache_before=$(cache_counts)
for row in set-up release sanitizers; do begin $row; done
echo "stages: $stages; about $(clock "$(seconds_to_go)") minutes on this machine"
tick=0
while [ ${#pid[@]} -gt 0 ]; do
  for row in set-up release sanitizers; do
    if [ -n "${pid[$row]:-}" ] && ! kill -0 "${pid[$row]}" 2>/dev/null; then end $row; fi
    if [ -z "${pid[$row]:-}" ]; then begin $row; fi
  done
  [ $((tick % pause)) != 0 ] || show_progress
  tick=$((tick + 1))
  sleep 0.2
done
[ -t 1 ] && printf '\r\033[K'

echo
echo "took $(clock $((SECONDS - began))) minutes; every step's output is in $logs"
show_cache "$cache_before"
[ ${#failures[@]} = 0 ] || echo "failed: ${failures[*]}"
[ ${#unsteady[@]} = 0 ] || echo "unsteady, held at the second try: ${unsteady[*]}"
line="$passed passed, $failed failed"
[ $skipped = 0 ] || line+=", $skipped skipped"
echo "$line"
[ $failed = 0 ] || exit 1
# What tools/tidy/alone.py compares with the next time.
if [ "$stages" = "$every" ] && [ -n "$commit" ] && [ -z "$(git status --porcelain)" ] &&
  [ "$(git rev-parse HEAD)" = "$commit" ]; then
  echo "$commit" >.cache/passed-commit
fi
