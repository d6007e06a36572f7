#!/usr/bin/env bash
# stages.sh [STAGE...]: the stages of `./run test`: unit lint integration fuzz asan tsan (all, in
# this order, when none is named). Shows what runs, since when and for about how long still; keeps
# every step's output in build/logs; ends with `N passed, N failed` on a line of its own.
set -uo pipefail
cd "$(dirname "$0")/../.."

jobs=$(nproc)
logs=build/logs
times=.cache/step-seconds  # what each step took on this machine the last time
mkdir -p "$logs" .cache
touch "$times"
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
export NINJA_STATUS='[%f/%t] '
passed=0 failed=0 skipped=0 began=$SECONDS
failures=()

# What a step took the last time, or else what it takes from nothing on two cores.
expected_seconds() {
  local known
  known=$(awk -v step="$1" '$1 == step { seconds = $2 } END { print seconds }' "$times")
  echo "${known:-$2}"
}

remember_seconds() {
  { grep -v "^$1 " "$times"; echo "$1 $2"; } >"$times.new"
  mv "$times.new" "$times"
}

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# What is still to run: "NAME SECONDS" each.
plan=()
remaining_seconds() {
  local entry sum=0
  for entry in "${plan[@]}"; do sum=$((sum + ${entry#* })); done
  echo "$sum"
}

show_progress() {  # STEP STARTED LOG EXPECTED-SECONDS
  local spent=$((SECONDS - $2)) rest what
  rest=$(($4 - spent))
  [ "$rest" -gt 5 ] || rest=5  # it takes longer than the last time, nobody knows how much
  rest=$((rest + $(remaining_seconds)))
  what=$(tail -n 1 "$3" 2>/dev/null | tr -d '\r' | cut -c 1-60)
  local line
  line=$(printf '  %-18s %s; whole run %s, about %s to go  %s' "$1" "$(clock $spent)" \
    "$(clock $((SECONDS - began)))" "$(clock "$rest")" "$what")
  if [ -t 1 ]; then printf '\r\033[K%s' "$line"; else printf '%s\n' "$line"; fi
}

# step NAME COMMAND...: runs it with its output in a log, and says how it went. Returns its status.
step() {
  local name=$1 log=$logs/$1.log started=$SECONDS status pause=30 expected=${plan[0]#* }
  shift
  [ -t 1 ] && pause=1
  plan=("${plan[@]:1}")
  # A process group of its own, so that an interrupt ends all of it (see below).
  setsid "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    show_progress "$name" $started "$log" "$expected"
    # A short step must not wait for the long pause to end.
    for ((tick = 0; tick < pause * 5; tick++)); do
      kill -0 $pid 2>/dev/null || break
      sleep 0.2
    done
  done
  wait $pid
  status=$?
  pid=
  [ -t 1 ] && printf '\r\033[K'
  if [ $status = 0 ]; then
    remember_seconds "$name" $((SECONDS - started))
    printf 'ok      %-18s %s\n' "$name" "$(clock $((SECONDS - started)))"
  else
    printf 'FAILED  %-18s %s (whole output: %s)\n' "$name" "$(clock $((SECONDS - started)))" "$log"
  fi
  return $status
}

pid=
ahead=  # the build that runs beside the release's tests (see build_asan_ahead)
stop() {
  [ -n "$pid" ] && kill -- "-$pid" 2>/dev/null
  [ -n "$ahead" ] && kill -- "-$ahead" 2>/dev/null
  echo "interrupted"
  exit 130
}
trap stop INT TERM HUP

# One at a time in each folder: a build that was begun ahead is waited for, then found complete.
build() {  # PRESET TARGET...
  mkdir -p build
  flock "build/$1.lock" bash -c \
    'bash tools/test/configure.sh "$1" && ninja -C "build/$1" -j "$2" "${@:3}"' _ \
    "$1" "$jobs" "${@:2}"
}
export -f build
export jobs

build_step() {  # NAME PRESET TARGET...
  local name=$1 preset=$2
  shift 2
  step "$name" bash -c 'build "$@"' _ "$preset" "$@" && return
  grep -E -A 12 'error:|FAILED:|CMake Error' "$logs/$name.log" | head -n 60
  failed=$((failed + 1))
  failures+=("$name")
  return 1
}

# ctest_step NAME PRESET CTEST-ARGUMENT...: counts its tests. None at all is a failure.
ctest_step() {
  local name=$1 preset=$2 summary
  shift 2
  step "$name" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error "$@"
  local status=$?
  summary=$(grep -E '^[0-9]+% tests passed' "$logs/$name.log")
  if [[ $summary =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    # ctest counts what was skipped among what passed.
    local unrun
    unrun=$(grep -c '\*\*\*Skipped' "$logs/$name.log")
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1] - unrun))
    skipped=$((skipped + unrun))
  else
    failed=$((failed + 1))
  fi
  if [ $status != 0 ]; then
    failures+=("$name")
    grep -E 'Failure$|: Failure|SUMMARY: |ERROR: |Error: |remedy|^\s+[0-9]+ - ' "$logs/$name.log" |
      head -n 60
  fi
  return $status
}

wanted() { [[ " ${stages[*]} " == *" $1 "* ]]; }

# Release: what users run. The build serves three stages.
release_built=
release_build() {
  [ -n "$release_built" ] && { plan=("${plan[@]:1}"); return; }
  build_step build-release release && release_built=1
}

# The tests of the stages that are wanted run at once, in the first of them, one test more than
# there are processors: those of integration wait more than they compute. RESOURCE_LOCK, where the
# tests are declared, keeps apart those that must not run side by side.
release_tests=
release_step() {
  release_build || return
  [ -n "$release_tests" ] && { plan=("${plan[@]:1}"); return; }
  release_tests=begun
  local chosen=() others=() stage which
  for stage in unit lint integration; do
    if wanted "$stage"; then chosen+=("$stage"); else others+=("$stage"); fi
  done
  # A unit test has its module's name as its label.
  if wanted unit; then which=(-LE "^($(IFS='|'; echo "${others[*]:-none}"))\$"); else
    which=(-L "^($(IFS='|'; echo "${chosen[*]}"))\$")
  fi
  if wanted fuzz || wanted asan; then build_asan_ahead; fi
  ctest_step tests release -j $((jobs + 1)) "${which[@]}"
}
stage_unit() { release_step; }
stage_integration() { release_step; }
stage_lint() {
  release_step
  if command -v clang-format >/dev/null; then
    if step format ./run format --check; then passed=$((passed + 1)); else
      failed=$((failed + 1))
      failures+=(format)
      tail -n 20 "$logs/format.log"
    fi
  else
    plan=("${plan[@]:1}")
  fi
}

# One build by clang serves both: what is fuzzed is what the tests run under the sanitizers. The
# release's tests mostly wait, so it begins beside them if both are wanted, at the lowest priority.
asan_targets=(tactus_tests tactus_fuzzers)
build_asan_ahead() {
  command -v clang++-16 >/dev/null || return
  setsid nice -n 19 bash -c 'build "$@"' _ asan-ubsan "${asan_targets[@]}" \
    >"$logs/build-asan-ahead.log" 2>&1 </dev/null &
  ahead=$!
}

asan_built=
asan_build() {
  [ -n "$asan_built" ] && { plan=("${plan[@]:1}"); return; }
  if ! command -v clang++-16 >/dev/null; then
    echo "skipped: no clang++-16 here"
    skipped=$((skipped + 1))
    plan=("${plan[@]:2}")
    return 1
  fi
  build_step build-asan asan-ubsan "${asan_targets[@]}" || return
  ahead=
  asan_built=1
}
stage_fuzz() {
  asan_build || return
  local status=0 targets
  step fuzz bash tools/test/fuzz.sh 10 || status=1
  targets=$(grep -c '^ok ' "$logs/fuzz.log")
  passed=$((passed + targets))
  [ $status = 0 ] && return
  failed=$((failed + 1))
  failures+=(fuzz)
  grep -vE '^ok ' "$logs/fuzz.log" | tail -n 40
}

stage_asan() {
  asan_build || return
  export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$PWD/tools/test/leaks.supp
  ctest_step asan asan-ubsan -j $((jobs + 1)) -LE '^(lint|integration)$'
}

# Only what has threads: ThreadSanitizer has nothing to say about the rest. Not gRPC's tests:
# Debian's libgrpc is built without it, so what gRPC passes from thread to thread looks like a race,
# thousands of times (asan runs them). Not server_kserve: it has no thread, and Debian's libprotobuf
# and a program with ThreadSanitizer disagree about the layout of a map.
# Nor whatever test of the knowledge base starts servers and has no thread of its own.
stage_tsan() {
  local modules='base|dispatch|engines|knowledge|runtime|scheduler|load|server_(http|metrics)'
  local targets
  bash tools/test/configure.sh tsan >"$logs/configure-tsan.log" 2>&1
  mapfile -t targets < <(ninja -C build/tsan -t targets all 2>/dev/null |
    grep -oE "/tactus_($modules)_test: CXX_EXECUTABLE" | cut -d: -f1 | sed 's,.*/,,' | sort -u)
  build_step build-tsan tsan "${targets[@]}" || return
  export TSAN_OPTIONS="suppressions=$PWD/tools/test/races.supp history_size=7 halt_on_error=1"
  ctest_step tsan tsan -j "$jobs" -L "^($modules)$" \
    -E 'Grpc|^MakeTransport|/(Sqlite|Postgres|Etcd|File) |^Crash'
}

# The steps of each stage, with the seconds each takes from nothing on two cores.
steps_of() {
  case $1 in
    unit) echo "build-release:700 tests:700" ;;
    lint) echo "build-release:700 tests:700 format:5" ;;
    integration) echo "build-release:700 tests:700" ;;
    fuzz) echo "build-asan:600 fuzz:160" ;;
    asan) echo "build-asan:600 asan:430" ;;
    tsan) echo "build-tsan:210 tsan:95" ;;
    *) return 1 ;;
  esac
}

stages=("$@")
[ $# -gt 0 ] || stages=(unit lint integration fuzz asan tsan)
planned=
for stage in "${stages[@]}"; do
  steps_of "$stage" >/dev/null || {
    echo "there is no stage $stage; the stages are unit lint integration fuzz asan tsan" >&2
    exit 2
  }
  for entry in $(steps_of "$stage"); do
    name=${entry%:*}
    # Only the first stage that needs a build pays for it.
    [[ $planned == *" $name "* ]] && seconds=0 || seconds=$(expected_seconds "$name" "${entry#*:}")
    planned+=" $name "
    plan+=("$name $seconds")
  done
done

echo "stages: ${stages[*]}; about $(clock "$(remaining_seconds)") minutes on this machine"
for stage in "${stages[@]}"; do
  echo "== $stage"
  "stage_$stage" || true
done
echo
echo "took $(clock $((SECONDS - began))) minutes; every step's output is in $logs"
[ ${#failures[@]} = 0 ] || echo "failed: ${failures[*]}"
line="$passed passed, $failed failed"
[ $skipped = 0 ] || line+=", $skipped skipped"
echo "$line"
[ $failed = 0 ]
