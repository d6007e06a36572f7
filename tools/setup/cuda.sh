#!/usr/bin/env bash
# cuda.sh: puts the headers of CUDA's driver interface into .cache/cuda/include, so that the engine
# for NVIDIA devices (src/engines/cuda) is built. The driver itself is opened when a device is asked
# for; nothing of NVIDIA's is linked or passed on.
#
# With CUDA_HOME set, that toolkit's header is used and nothing is fetched. Otherwise it is the one
# of PyPI's nvidia-cuda-runtime, 2.2 MB, which is the same for every processor.
source "$(dirname "$0")/lib.sh"

version=13.0.96
wheel=nvidia_cuda_runtime-$version-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
sha=7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
target=$cache/cuda

if [ -n "${CUDA_HOME:-}" ]; then
  [ -f "$CUDA_HOME/include/cuda.h" ] && exit 0
  fail "CUDA_HOME=$CUDA_HOME lacks include/cuda.h" \
    "point it to a CUDA toolkit (13.0 or later), or unset it to have the header fetched"
fi
is_complete "$target" "$version" && exit 0

pip_fetch "nvidia-cuda-runtime==$version" "$wheel" "$sha"
say "unpacking the header of CUDA $version"
rm -rf "$target"
mkdir -p "$target/include" "$target/whole"
python3 -m zipfile -e "$cache/downloads/$wheel" "$target/whole"
mv "$target/whole/nvidia/cu13/include/cuda.h" "$target/include/"
mv "$target/whole/nvidia_cuda_runtime-$version.dist-info/licenses/License.txt" "$target/LICENSE"
rm -rf "$target/whole" "$cache/downloads/$wheel"
mark_complete "$target" "$version"
