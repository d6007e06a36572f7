#!/usr/bin/env bash
# arm64.sh [--check]: makes out/package/tactus_VERSION_arm64.deb, cross-compiled in a bare Debian 12
# in a folder, .cache/arm64, which has arm64 as a second architecture; prints its name last. With
# --check, unit tests run there under qemu-user, the package is installed there, and it serves a
# model. Exit code 77: not made here, and why.
#
# What the manual pages say is the same everywhere: they are of this machine's own package
# (package.sh), which has to be made before.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/deploy/bare_debian.sh
may_make_bare_debian
here=$PWD machine=$PWD/.cache/arm64
# Those of the program that stand for themselves; the others need graphs, networks or minutes.
modules='base|core|policies|dispatch|pipeline|server_[a-z]+'
# What compiles, and what is the same on every machine; all else is taken for arm64.
native='ca-certificates|g\+\+|cmake|ninja-build|ccache|mold|protobuf-compiler.*|python3'
native+='|pkg-config.*'

leave() {
  local status=$? folder
  [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
  for folder in proc dev "$here"; do umount -l "$machine/$folder" 2>/dev/null || true; done
  [ $status = 0 ] || [ $status = 77 ] || echo "arm64: FAILED" >&2
}
trap leave EXIT

say() { printf '== %s\n' "$*" >&2; }
inside() {  # COMMAND...: in the machine's copy of this folder
  local settings
  mapfile -t settings < <(env | grep '^CCACHE_' || true)
  chroot "$machine" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ONNXRUNTIME_ROOT="$here/.cache/onnxruntime-aarch64" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    "${settings[@]}" /bin/bash -c 'cd "$0" && exec "$@"' "$here" "$@"
}

# The packages of the groups of tools/setup/packages.txt, arm64's where there is one for it.
packages_of() {  # GROUP...
  local group name
  for group in "$@"; do
    sed -nE "s/^$group +([^ |]+).*/\\1/p" tools/setup/packages.txt
  done | sort -u | while read -r name; do
    if [[ $name =~ ^($native)$ ]] ||
      inside apt-cache show "$name" | grep -q '^Architecture: all'; then
      echo "$name"
    else
      echo "$name:arm64"
    fi
  done
}

make_machine() {
  local stamp names
  stamp=$(sha256sum tools/setup/packages.txt tools/deploy/arm64.sh | sha256sum | cut -d' ' -f1)
  if [ "$(cat "$machine/.complete" 2>/dev/null)" != "$stamp" ]; then
    say "a bare Debian 12 with the packages of arm64, in .cache/arm64: some minutes"
    rm -rf --one-file-system "$machine"
    bare_debian "$machine" ca-certificates || { echo "debootstrap failed" >&2; return 1; }
    mkdir -p "$machine$here"
    inside dpkg --add-architecture arm64
    inside apt-get -qq update
    mapfile -t names < <(packages_of build all postgres)
    inside apt-get -qq install -y --no-install-recommends -o Dpkg::Use-Pty=0 \
      crossbuild-essential-arm64 qemu-user-static patchelf binutils dpkg-dev file \
      "${names[@]}" >"$machine.log" 2>&1 || { tail -n 20 "$machine.log" >&2; return 1; }
    rm -f "$machine.log"
    echo "$stamp" >"$machine/.complete"
  fi
  mount -t proc proc "$machine/proc"
  mount --bind /dev "$machine/dev"
  mount --bind "$here" "$machine$here"
}

build() {  # TARGET...
  inside cmake --preset release -B build/arm64 --toolchain cmake/arm64.cmake -DTACTUS_UNITY=ON \
    -DTACTUS_VIDEO=OFF >build/arm64.log 2>&1 || { tail -n 30 build/arm64.log >&2; return 1; }
  inside env NINJA_STATUS='[%f/%t, %es] ' ninja -C build/arm64 -j "$(nproc)" "$@" >&2
}

run_tests() {
  local tests test
  mapfile -t tests < <(inside ninja -C build/arm64 -t targets all |
    sed -nE "s/^(tactus_($modules)_test): phony\$/\\1/p" | sort)
  build "${tests[@]}"
  for test in "${tests[@]}"; do
    say "$test, under qemu"
    inside qemu-aarch64-static "build/arm64/src/$test" --gtest_brief=1 >&2
  done
}

# A model over HTTP, by the installed package.
serve() {
  local tries port answer
  rm -rf "$machine/tmp/models"
  mkdir "$machine/tmp/models"
  cp -r models/ee_mlp "$machine/tmp/models/"
  # Nothing is measured here, so nothing may be late.
  sed -i 's/\(slo_ms".*string_value: \)"[0-9]*"/\1"600000"/' \
    "$machine/tmp/models/ee_mlp/config.pbtxt"
  inside qemu-aarch64-static /usr/lib/tactus/tactus serve --models /tmp/models --http-port 0 \
    --grpc-port 0 --metrics-port 0 >"$machine/tmp/log" 2>&1 &
  server=$!
  for ((tries = 0; tries < 1200; tries++)); do
    ! grep -q '^ready ' "$machine/tmp/log" || break
    kill -0 $server 2>/dev/null || break
    sleep 0.25
  done
  port=$(sed -nE 's/^ready .*http=([0-9]+).*/\1/p' "$machine/tmp/log")
  [ -n "$port" ] || { cat "$machine/tmp/log" >&2; return 1; }
  answer=$(python3 -c 'import json
print(json.dumps({"inputs": [{"name": "input", "shape": [1, 1, 28, 28], "datatype": "FP32",
                              "data": [0.5] * 784}]}))' |
    curl -sS --max-time 60 -d @- "http://127.0.0.1:$port/v2/models/ee_mlp/infer")
  grep -q '"outputs"' <<<"$answer" || { echo "no inference: $answer" >&2; return 1; }
  kill $server
  wait $server || { cat "$machine/tmp/log" >&2; return 1; }
  server=
}

printed=build/package/generated/package
[ -e $printed/printed ] || { echo "arm64: no manual pages; make ./run package first" >&2; exit 1; }
make_machine
bash tools/setup/onnxruntime.sh aarch64 >&2
mkdir -p build
build tactus
rm -rf build/arm64/generated/package
mkdir -p build/arm64/generated
cp -r $printed build/arm64/generated/
inside python3 -B tools/deploy/binaries.py build/arm64/apps/tactus build/arm64/generated/bundle
rm -f out/package/tactus_*_arm64.deb
(inside /bin/bash -c 'cd build/arm64 && cpack -G DEB') >>build/arm64.log 2>&1 || {
  tail -n 20 build/arm64.log >&2
  exit 1
}
rm -rf out/package/_CPack_Packages
made=$(echo out/package/tactus_*_arm64.deb)
if [ "${1:-}" = --check ]; then
  run_tests
  say "install $made"
  cp "$made" "$machine/tmp/tactus.deb"
  inside apt-get -qq install -y --no-install-recommends -o Dpkg::Use-Pty=0 /tmp/tactus.deb \
    >"$machine/tmp/apt.log" 2>&1 || { tail -n 20 "$machine/tmp/apt.log" >&2; exit 1; }
  say "serve, under qemu"
  serve
  inside apt-get -qq purge -y tactus:arm64 >/dev/null 2>&1
  echo "arm64: unit tests passed, installed and served under qemu-user"
fi
echo "$made"
