#!/usr/bin/env bash
# triton.sh: the real tritonserver 2.51.0, in .cache/triton, out of a wheel on PyPI (55 MB; 145 MB
# unpacked). With it come its core, HTTP, gRPC and the backend that runs models in Python; no other
# backend. Nothing of it is installed elsewhere. Its models need numpy 1: it reads arrays of numpy 2
# as empty. onnxruntime is that of .cache/venv (python.sh).
source "$(dirname "$0")/lib.sh"

version=0.7.0
numpy=1.26.4
file=nvidia_pytriton-$version-py3-none-manylinux_2_35_x86_64.whl
sum=21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df
target=$cache/triton
is_complete "$target" "$version $numpy" && exit 0

[ "$(uname -m)" = x86_64 ] || fail "PyPI has no tritonserver for $(uname -m)" \
  "use an x86-64 machine"
mkdir -p "$cache/downloads"
if [ ! -f "$cache/downloads/$file" ]; then
  say "downloading tritonserver 2.51.0 (nvidia-pytriton $version, 55 MB)"
  "$cache/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --platform manylinux_2_35_x86_64 --dest "$cache/downloads" \
    "nvidia-pytriton==$version" >"$cache/pip.log" 2>&1 || {
    tail -n 5 "$cache/pip.log" >&2
    fail "pip could not fetch nvidia-pytriton $version" \
      "check the network and pip's configuration (\`pip config list\`), then run again"
  }
fi
verify "$cache/downloads/$file" "$sum"
rm -rf "$target"
mkdir -p "$target"
python3 -m zipfile -e "$cache/downloads/$file" "$target"
rm -f "$cache/downloads/$file"

server=$target/pytriton/tritonserver
python=$("$cache/venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
stub=$server/backends/python/triton_python_backend_stub
[ -d "$server/python_backend_stubs/$python" ] || fail "the wheel has no stub for Python $python" \
  "make .cache/venv with one of $(ls "$server/python_backend_stubs" | xargs)"
cp "$server/python_backend_stubs/$python/triton_python_backend_stub" "$stub"
chmod +x "$server/bin/tritonserver" "$stub"
for program in "$server/bin/tritonserver" "$stub"; do
  lacks=$(LD_LIBRARY_PATH=$target/nvidia_pytriton.libs ldd "$program" |
    awk '/not found/ { print $1 }')
  [ -z "$lacks" ] || fail "${program##*/} lacks $(xargs <<<"$lacks")" \
    "install the package libpython$python"
done
"$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
  --only-binary=:all: --target "$target/packages" "numpy==$numpy" >"$cache/pip.log" 2>&1 || {
  tail -n 5 "$cache/pip.log" >&2
  fail "pip could not install numpy $numpy" "check the network and pip's configuration, run again"
}
mark_complete "$target" "$version $numpy"
