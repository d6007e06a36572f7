#!/usr/bin/env bash
# package.sh [VERSION]: makes out/package/tactus_VERSION_ARCHITECTURE.deb of a release build, for
# Debian 12 and 13; the VERSION is the project's unless it is given. Prints the file's name last.
# package.sh wheel: makes a wheel for Python's pip in the same folder (wheel.py).
#
# The builds are of their own (build/package, build/wheel), without what reads video: that is the
# package tactus-video (video_package.sh). Both bring libraries along (binaries.py). The wheel's
# would be libpq too, with 14 others (Kerberos, LDAP, ...), so its knowledge base is SQLite's.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
  printf 'package: %s\n  remedy: %s\n' "$1" "$2" >&2
  exit 1
}

# build FOLDER OPTION... -- TARGET...: configures build/FOLDER and builds the targets there.
build() {
  local folder=build/$1 options=(-DTACTUS_VIDEO=OFF)
  shift
  source tools/test/ccache.sh
  export NINJA_STATUS='[%f/%t, %es] '
  log=$folder.log
  mkdir -p build
  [ -e "$folder/CMakeCache.txt" ] || options+=(-DTACTUS_UNITY=ON)
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  cmake --preset release -B "$folder" "${options[@]}" >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    fail "cmake could not configure $folder" "the whole log is $log"
  }
  ninja -C "$folder" -j "$(nproc)" "${@:2}" >&2
}

for program in patchelf readelf dpkg-query cpack dpkg-deb; do
  command -v $program >/dev/null || fail "there is no $program here" \
    "build packages on Debian 12, with the group package of tools/setup/packages.txt"
done
if [ "${1:-}" = wheel ]; then
  build wheel -DTACTUS_POSTGRES=OFF -- tactus
  mkdir -p out/package
  rm -f out/package/*.whl
  exec python3 -B tools/deploy/wheel.py build/wheel/apps/tactus out/package
fi

version=${1:-}
[[ -z $version || $version =~ ^[0-9][A-Za-z0-9.+~]*$ ]] ||
  fail "'$version' is no version of a Debian package" "for example 0.1.1 or 0.1.0+git20261123"

build package -- tactus tactus_package_files

rm -rf out/package/tactus_*.deb out/package/_CPack_Packages
as=()
[ -z "$version" ] || as=(-D "CPACK_PACKAGE_VERSION=$version")
(cd build/package && cpack -G DEB "${as[@]}") >>"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "cpack could not make the package" "the whole log is $log"
}
rm -rf out/package/_CPack_Packages
package=$(echo out/package/tactus_*.deb)
grep -q '/usr/lib/tactus/libonnxruntime.so.1$' <<<"$(dpkg-deb --contents "$package")" ||
  fail "the package has no ONNX Runtime" "./run build fetches it; or set ONNXRUNTIME_ROOT"
echo "$package"
