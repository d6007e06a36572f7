#!/usr/bin/env bash
# configure.sh PRESET: how ./run and its stages configure a build, so that they share its folder. A
# new one will be built from nothing, so its files are compiled together (TACTUS_UNITY, in
# cmake/TactusModule.cmake); one that is there stays as it is. dev and coverage: file by file.
set -euo pipefail
cd "$(dirname "$0")/../.."

preset=$1
together=()
case $preset in
  release | asan-ubsan | tsan)
    [ -e "build/$preset/CMakeCache.txt" ] || together=(-DTACTUS_UNITY=ON)
    ;;
esac
exec cmake --preset "$preset" "${together[@]}"
