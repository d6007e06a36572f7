#!/usr/bin/env bash
# onnxruntime.sh: puts ONNX Runtime's headers and library into .cache/onnxruntime/{include,lib}.
#
# With ONNXRUNTIME_ROOT set, that installation is used and nothing is fetched. Otherwise the library
# is Microsoft's own build as it lies in the npm package onnxruntime-node, and the headers, which
# that package lacks, come from the packaged iOS framework of the same API. `npm install` would
# download more from elsewhere; `npm pack` fetches the one file.
source "$(dirname "$0")/lib.sh"

node_version=1.30.0
headers_version=0.4.9
node_tar=onnxruntime-node-$node_version.tgz
headers_tar=com.github.asus4.onnxruntime-$headers_version.tgz
node_sha=6e3390d6b783e7be946fad629292799da28d0b42f84856e50d2c1b0383291e75
headers_sha=e59788788818fdde1b2e522e766a21ba0f7d8391de55737abf81e32cc801785d
target=$cache/onnxruntime

if [ -n "${ONNXRUNTIME_ROOT:-}" ]; then
  header=$(find "$ONNXRUNTIME_ROOT/include" -name onnxruntime_cxx_api.h 2>/dev/null | head -n 1)
  library=$(find "$ONNXRUNTIME_ROOT"/lib* -name 'libonnxruntime.so*' 2>/dev/null | head -n 1)
  [ -n "$header" ] && [ -n "$library" ] && exit 0
  fail "ONNXRUNTIME_ROOT=$ONNXRUNTIME_ROOT lacks include/**/onnxruntime_cxx_api.h or
  lib/libonnxruntime.so*" \
    "point it to an unpacked release of ONNX Runtime, or unset it to have one fetched"
fi

case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) fail "no packaged ONNX Runtime for $(uname -m)" \
    "build ONNX Runtime for this machine and set ONNXRUNTIME_ROOT to it" ;;
esac
version="$node_version headers $headers_version $arch"
is_complete "$target" "$version" && exit 0

npm_fetch "onnxruntime-node@$node_version" "$node_tar" "$node_sha"
npm_fetch "com.github.asus4.onnxruntime@$headers_version" "$headers_tar" "$headers_sha"
say "unpacking ONNX Runtime $node_version"
rm -rf "$target"
mkdir -p "$target/include" "$target/lib"
framework=onnxruntime.xcframework/ios-arm64/onnxruntime.framework
tar -xzf "$cache/downloads/$headers_tar" -C "$target/include" --strip-components=7 \
  "package/Plugins/iOS~/$framework/Headers"
tar -xzf "$cache/downloads/$node_tar" -C "$target/lib" --strip-components=5 \
  "package/bin/napi-v6/linux/$arch/libonnxruntime.so.1"
tar -xzf "$cache/downloads/$headers_tar" -C "$target" --strip-components=1 package/LICENSE
mark_complete "$target" "$version"
rm -f "$cache/downloads/$node_tar" "$cache/downloads/$headers_tar"
