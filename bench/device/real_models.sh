#!/bin/bash
# real_models.sh OUT: real networks behind `tactus` on a device, once from end to end: profiles of
# all of the device and of parts, a server with two lanes beside one on the processor (are the
# answers alike?), load over both protocols, and a pipeline of pictures. `./run bench gpu --pack DIR
# --models` puts this, the program, ONNX Runtime and the models into DIR/models.tar.xz. Logs and
# profiles go to OUT; what failed stays in its log, and the next step follows.
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d)
began=$(date +%s)
say() { echo "== $(($(date +%s) - began)) s: $*"; }

tar -C "$home" -xJf "$here/models.tar.xz"
# PyTorch's packages have the libraries of NVIDIA's that ONNX Runtime opens.
nvidia=$(python3 -c 'import glob, nvidia
print(":".join(sorted(d for p in nvidia.__path__ for d in glob.glob(p + "/*/lib"))))' 2>/dev/null)
export ONNXRUNTIME_ROOT=$home/ort
libraries=$home/ort/lib:$home/lib:$nvidia
tactus() { LD_LIBRARY_PATH=$libraries "$home/bin/tactus" "$@"; }
serve() { # LOG ARGUMENT...
  LD_LIBRARY_PATH=$libraries "$home/bin/tactus" serve "${@:2}" >"$out/$1.log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    curl -sf 127.0.0.1:8000/v2/health/ready >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  say "$1: ready, or ended"
}
stop() { # LOG
  kill "$server" 2>/dev/null
  wait "$server"
  say "$1: stopped with code $?"
  tail -n 12 "$out/$1.log"
}
answers() { python3 -B "$here/real_models.py" "$@" --pictures "$home"/pictures/*.jpg; }
profile() { # NAME ARGUMENT...
  timeout 90 env LD_LIBRARY_PATH="$libraries" "$home/bin/tactus" profile --device cuda:0 \
    --repetitions 30 --budget 0.2 --out "$out/$1.json" "${@:2}" >"$out/profile-$1.log" 2>&1
  say "profile $1: code $?"
  tail -n 14 "$out/profile-$1.log"
}
load() { # NAME ARGUMENT...
  timeout 30 env LD_LIBRARY_PATH="$libraries" "$home/bin/tactus" load --duration 4 "${@:2}" 2>&1 |
    tee "$out/load-$1.log" | tail -n 6
}

nvidia-smi --query-gpu=name,driver_version,power.limit,mig.mode.current,clocks.sm --format=csv
for set in exits street; do
  serve "$set-processor" --models "$home/$set" --lanes 4
  answers save "$home/$set.json" >"$out/answers-$set-processor.log"
  stop "$set-processor" >/dev/null
done
profile exits --models "$home/exits"
for share in 25 50; do
  profile "exits-$share" --models "$home/exits" --only ee_l --share $share
done
serve exits --models "$home/exits" --device cuda:0 --lanes 2 --profile "$out/exits.json"
answers compare "$home/exits.json" | tee "$out/answers-exits.log"
for protocol in http grpc; do
  load "exits-$protocol" --protocol $protocol --models ee_s,ee_m,ee_l --random --concurrency 64
done
stop exits
serve street --models "$home/street" --device cuda:0 --lanes 1
answers compare "$home/street.json" | tee "$out/answers-street.log"
for callers in 4 16; do
  load "street-$callers" --protocol grpc --models street --concurrency $callers \
    --input jpeg="$home/pictures/street1.jpg"
done
stop street
rm -rf "$home"
say done
