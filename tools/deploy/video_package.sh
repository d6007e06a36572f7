#!/usr/bin/env bash
# video_package.sh SUITE...: makes out/package/tactus-video_VERSION+SUITE_ARCHITECTURE.deb for each
# SUITE (bookworm, trixie): the library that reads video for `tactus stream` and the streams of a
# server. It is a package of its own, since it is linked with Debian's libav, which is under the GPL
# (THIRD_PARTY.md), and since each Debian has another libav: each is built in a bare Debian of that
# suite, in a folder. Prints the files' names last. Exit code 77: not made here, and why.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/deploy/bare_debian.sh
may_make_bare_debian
[ $# -gt 0 ] || { echo "video_package.sh SUITE..." >&2; exit 2; }
version=$(sed -nE 's/^project\(tactus VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
root=

leave() {
  local status=$?
  if [ -n "$root" ]; then
    umount -l "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
  fi
  [ $status = 0 ] || echo "video package: FAILED" >&2
}
trap leave EXIT

libraries=libavformat-dev,libavcodec-dev,libavutil-dev,libswscale-dev,libturbojpeg0-dev,libfmt-dev
# The compiler is of one version everywhere: program and library hand each other C++ objects.
build_in_it='
set -e
cd /src
flags=$(pkg-config --cflags --libs libavformat libavcodec libavutil libswscale)
g++-12 -std=c++23 -O2 -fPIC -shared -fvisibility=hidden -fvisibility-inlines-hidden \
  -ffile-prefix-map=/src=. -DFMT_HEADER_ONLY -DTACTUS_VERSION="\"$1\"" -Isrc \
  src/stream/video/av_source.cc src/stream/video/pictures.cc src/stream/jpeg.cc \
  src/stream/source_address.cc -o /made/usr/lib/tactus/libtactus_video.so \
  -Wl,--no-undefined $flags -lturbojpeg
strip --strip-unneeded /made/usr/lib/tactus/libtactus_video.so
mkdir -p /made/debian
touch /made/debian/control
cd /made
dpkg-shlibdeps -O usr/lib/tactus/libtactus_video.so | sed "s/^shlibs:Depends=//" >/depends
'

make_for() {  # SUITE
  local suite=$1 of made architecture
  of=$version+$suite
  root=$(mktemp -d "${TMPDIR:-/var/tmp}/tactus-video.XXXXXX")
  bare_debian "$root" "g++-12,pkgconf,dpkg-dev,$libraries" "$suite" || {
    echo "debootstrap failed" >&2
    return 1
  }
  mount -t proc proc "$root/proc"
  mkdir -p "$root/src" "$root/made/usr/lib/tactus" "$root/made/usr/share/doc/tactus-video"
  cp -r src "$root/src/"
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    /bin/bash -c "$build_in_it" build "$version" >&2
  cp THIRD_PARTY.md deploy/debian/copyright "$root/made/usr/share/doc/tactus-video/"
  rm -r "$root/made/debian"
  mkdir "$root/made/DEBIAN"
  architecture=$(chroot "$root" dpkg --print-architecture)
  cat >"$root/made/DEBIAN/control" <<CONTROL
Package: tactus-video
Version: $of
Architecture: $architecture
Section: science
Priority: optional
Maintainer: the authors of Tactus <tactus@localhost>
Depends: tactus (>= $version), tactus (<< $version.0~), $(cat "$root/depends")
Description: reads video for the inference server Tactus
 Cameras over RTSP and HTTP, and recordings, as streams into a pipeline. It is
 linked with FFmpeg, whose licence in Debian is the GPL.
CONTROL
  made=out/package/tactus-video_${of}_$architecture.deb
  mkdir -p out/package
  dpkg-deb --build --root-owner-group "$root/made" "$made" >&2
  umount -l "$root/proc"
  rm -rf --one-file-system "$root"
  root=
  echo "$made"
}

rm -f out/package/tactus-video_*.deb
for suite in "$@"; do make_for "$suite"; done
