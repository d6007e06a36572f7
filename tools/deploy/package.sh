#!/usr/bin/env bash
# package.sh [VERSION]: makes out/package/tactus_VERSION_ARCHITECTURE.deb of a release build; the
# VERSION is the project's unless it is given. Prints the file's name last.
#
# The build is one of its own (build/package), without libav: Debian's is under the GPL, and so
# would be a program linked with it that is passed on (THIRD_PARTY.md). `tactus stream` of the
# package therefore reads no video.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
  printf 'package: %s\n  remedy: %s\n' "$1" "$2" >&2
  exit 1
}
for program in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $program >/dev/null || fail "there is no $program here" \
    "build the package on Debian 12, with the packages cmake and dpkg-dev"
done

version=${1:-}
[[ -z $version || $version =~ ^[0-9][A-Za-z0-9.+~]*$ ]] ||
  fail "'$version' is no version of a Debian package" "for example 0.1.1 or 0.1.0+git20261123"

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 NINJA_STATUS='[%f/%t, %es] '
log=build/package.log
mkdir -p build
together=()
[ -e build/package/CMakeCache.txt ] || together=(-DTACTUS_UNITY=ON)
cmake --preset release -B build/package -DTACTUS_VIDEO=OFF "${together[@]}" >"$log" 2>&1 || {
  tail -n 30 "$log" >&2
  fail "cmake could not configure build/package" "the whole log is $log"
}
ninja -C build/package -j "$(nproc)" tactus tactus_package_files >&2

rm -rf out/package
as=()
[ -z "$version" ] || as=(-D "CPACK_PACKAGE_VERSION=$version")
(cd build/package && cpack -G DEB "${as[@]}") >>"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "cpack could not make the package" "the whole log is $log"
}
rm -rf out/package/_CPack_Packages
package=$(echo out/package/*.deb)
grep -q '/usr/lib/tactus/libonnxruntime.so.1$' <<<"$(dpkg-deb --contents "$package")" ||
  fail "the package has no ONNX Runtime" "./run build fetches it; or set ONNXRUNTIME_ROOT"
echo "$package"
