#!/bin/sh
# run_gpu.sh PROGRAM SCRIPT FOLDER ARGUMENTS...: runs the benchmark, with the ResNets that SCRIPT
# (models/resnets.py) writes into FOLDER where there is a device, something here runs them and
# nobody named others: as AOTInductor packages where the program was built with PyTorch, else as
# ONNX graphs where ONNX Runtime for devices is.
program=$1
script=$2
folder=$3
shift 3

wanted=yes
only=$(printf '%s\n' "$@" | grep -A 1 -x -e '--only' | tail -n 1)
for argument in "$@"; do
  case $argument in
    --only=*) only=${argument#--only=} ;;
    --fake | --processor | --list | --help | -h | --resnets | --resnets=*) wanted=no ;;
  esac
done
case ,$only, in
  ,, | *,resnets,*) ;;
  *) wanted=no ;;
esac
[ -e /dev/nvidiactl ] || wanted=no

write() {
  [ -f "$folder/.complete" ] && return
  rm -rf "$folder"
  "$1" -B "$script" --out "$folder" --format "$2" && : >"$folder/.complete"
}
if [ "$wanted" = yes ]; then
  root=$(dirname "$script")/..
  if ldd "$program" | grep -q libtorch; then
    write "${PYTHON:-python3}" aoti
  elif [ -n "${ONNXRUNTIME_ROOT:-}" ] || [ -d "$root/.cache/onnxruntime-gpu/lib" ]; then
    python=$root/.cache/venv/bin/python
    [ -x "$python" ] || python=python3
    write "${PYTHON:-$python}" onnx
  fi
  [ -f "$folder/.complete" ] && set -- "$@" --resnets "$folder"
fi
# For the program alone: Python has libraries of its own.
LD_LIBRARY_PATH=${BENCH_LIBRARIES:+$BENCH_LIBRARIES:}${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH
exec "$program" "$@"
