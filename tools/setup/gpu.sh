#!/usr/bin/env bash
# gpu.sh: puts ONNX Runtime with its CUDA provider, and the libraries of NVIDIA's that it needs,
# into .cache/onnxruntime-gpu/lib, where `tactus serve --device cuda:0` looks
# (docs/reference/gpu.md). 1.4 GB are fetched, more unpacked. The driver is not among them: it comes
# with the machine.
#
# With ONNXRUNTIME_ROOT set, that installation is used and nothing is fetched.
source "$(dirname "$0")/lib.sh"

target=$cache/onnxruntime-gpu
version="1.30.0 CUDA 13.0 with NVRTC"
# Wheels of PyPI. ONNX Runtime's is for one version of Python; its libraries are the same in all.
wheels=(
  "onnxruntime-gpu==1.30.0
   onnxruntime_gpu-1.30.0-cp311-cp311-manylinux_2_28_x86_64.whl
   4fbf0c5d7b5fb99266c2e8a802e3e64af68bdc383e0f3c7349b985f1087eedaa"
  "nvidia-cuda-runtime==13.0.96
   nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"
  "nvidia-cuda-nvrtc==13.0.88
   nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl
   ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"
  "nvidia-cublas==13.1.0.3
   nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl
   ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171"
  "nvidia-cudnn-cu13==9.19.0.56
   nvidia_cudnn_cu13-9.19.0.56-py3-none-manylinux_2_27_x86_64.whl
   d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf"
  "nvidia-curand==10.4.0.35
   nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_x86_64.whl
   1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc"
  "nvidia-cufft==12.0.0.61
   nvidia_cufft-12.0.0.61-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
   6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3"
)

[ -z "${ONNXRUNTIME_ROOT:-}" ] || exit 0
is_complete "$target" "$version" && exit 0
[ "$(uname -m)" = x86_64 ] || fail "no packaged ONNX Runtime for GPUs and $(uname -m)" \
  "build ONNX Runtime with CUDA for this machine and set ONNXRUNTIME_ROOT to it"

rm -rf "$target"
mkdir -p "$target/lib" "$target/licences"
for wheel in "${wheels[@]}"; do
  read -r package file sha <<<"${wheel//$'\n'/ }"
  pip_fetch "$package" "$file" "$sha"
  say "unpacking $package"
  python3 -m zipfile -e "$cache/downloads/$file" "$target/whole"
  find "$target/whole" -name '*.so*' ! -name '*pybind11*' ! -name '*.alt.*' \
    -exec mv -t "$target/lib" {} +
  license=$(find "$target/whole" -iname 'license*' -type f | head -n 1)
  [ -z "$license" ] || mv "$license" "$target/licences/${package%%=*}.txt"
  rm -rf "$target/whole" "$cache/downloads/$file"
done
ln -sf libonnxruntime.so.1.30.0 "$target/lib/libonnxruntime.so.1"
mark_complete "$target" "$version"
