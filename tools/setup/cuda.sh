#!/usr/bin/env bash
# cuda.sh: puts the headers of NVIDIA's driver and of its management library (NVML) into
# .cache/cuda/include, so that the engine for NVIDIA devices (src/engines/cuda) is built. The two
# libraries are opened when a device is asked for; nothing of NVIDIA's is linked or passed on.
#
# With CUDA_HOME set, that toolkit's headers are used and nothing is fetched. Otherwise they are
# those of PyPI's nvidia-cuda-runtime, 2.2 MB, and nvidia-nvml-dev, 0.1 MB, which are the same for
# every processor.
source "$(dirname "$0")/lib.sh"

version=13.0.96
wheel=nvidia_cuda_runtime-$version-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
sha=7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvml_version=13.0.87
nvml_wheel=nvidia_nvml_dev-$nvml_version-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
nvml_sha=082871368275cf6620fc900f55d8eaf2563b263a38a00a5168e9650bce963ba1
target=$cache/cuda

if [ -n "${CUDA_HOME:-}" ]; then
  [ -f "$CUDA_HOME/include/cuda.h" ] && [ -f "$CUDA_HOME/include/nvml.h" ] && exit 0
  fail "CUDA_HOME=$CUDA_HOME lacks include/cuda.h or include/nvml.h" \
    "point it to a CUDA toolkit (13.0 or later), or unset it to have the headers fetched"
fi
is_complete "$target" "$version, NVML $nvml_version" && exit 0

pip_fetch "nvidia-cuda-runtime==$version" "$wheel" "$sha"
pip_fetch "nvidia-nvml-dev==$nvml_version" "$nvml_wheel" "$nvml_sha"
say "unpacking the headers of CUDA $version"
rm -rf "$target"
mkdir -p "$target/include" "$target/whole"
for file in "$wheel" "$nvml_wheel"; do
  python3 -m zipfile -e "$cache/downloads/$file" "$target/whole"
done
mv "$target/whole/nvidia/cu13/include/cuda.h" "$target/whole/nvidia/cu13/include/nvml.h" \
  "$target/include/"
mv "$target/whole/nvidia_cuda_runtime-$version.dist-info/licenses/License.txt" "$target/LICENSE"
mv "$target/whole/nvidia_nvml_dev-$nvml_version.dist-info/licenses/License.txt" \
  "$target/LICENSE.nvml"
rm -rf "$target/whole" "$cache/downloads/$wheel" "$cache/downloads/$nvml_wheel"
mark_complete "$target" "$version, NVML $nvml_version"
