#!/usr/bin/env bash
# onnxruntime.sh: puts ONNX Runtime's library into .cache/onnxruntime/lib. Its headers are in the
# tree (third_party/onnxruntime).
#
# With ONNXRUNTIME_ROOT set, that installation is used and nothing is fetched. Otherwise the library
# is Microsoft's own build, taken out of PyPI's wheel for Python 3.11; it has nothing of Python.
source "$(dirname "$0")/lib.sh"

version=1.30.0
target=$cache/onnxruntime

if [ -n "${ONNXRUNTIME_ROOT:-}" ]; then
  library=$(find "$ONNXRUNTIME_ROOT"/lib* -name 'libonnxruntime.so*' 2>/dev/null | head -n 1) ||
    true
  [ -n "$library" ] && exit 0
  fail "ONNXRUNTIME_ROOT=$ONNXRUNTIME_ROOT lacks lib/libonnxruntime.so*" \
    "point it to an unpacked release of ONNX Runtime, or unset it to have one fetched"
fi

machine=$(uname -m)
case $machine in
  x86_64) sha=fd54b314ea385bcecac69ab431f020ba503e3878dad4ebb645fec5a24b041242 ;;
  aarch64) sha=bac3aee7b40acd805659fd81a2acd6096312d5b0f014c97ddfe75fb4c1644627 ;;
  *) fail "no packaged ONNX Runtime for $machine" \
    "build ONNX Runtime for this machine and set ONNXRUNTIME_ROOT to it" ;;
esac
is_complete "$target" "$version wheel $machine" && exit 0

wheel=onnxruntime-$version-cp311-cp311-manylinux_2_28_$machine.whl
pip_fetch "onnxruntime==$version" "$wheel" "$sha"
rm -rf "$target"
mkdir -p "$target/lib"
python3 -m zipfile -e "$cache/downloads/$wheel" "$target/wheel"
mv "$target/wheel/onnxruntime/capi/libonnxruntime.so.$version" "$target/lib/libonnxruntime.so.1"
mv "$target/wheel/onnxruntime/LICENSE" "$target/"
rm -rf "$target/wheel" "$cache/downloads/$wheel"
mark_complete "$target" "$version wheel $machine"
