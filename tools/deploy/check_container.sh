#!/usr/bin/env bash
# check_container.sh FOLDER: builds deploy/Containerfile around the Debian packages of the folder,
# by buildah with its chroot isolation, and runs what it made by runc as the chart and
# docs/guide/deploy.md would: as the image's user, in a network of its own, without capabilities, on
# a file system that is read only. A model is served, asked over HTTP, a recording is streamed to
# it, and it is ended by the image's signal. Then the image is written as an OCI archive,
# out/package/tactus-VERSION.oci.tar, whose name is printed last. Exit code 77: not tried here, and
# why.
#
# No registry is asked: the image that the Containerfile starts from is a bare Debian 12 made by
# debootstrap, without documentation and languages, as debian:12-slim is. What it takes is thrown
# away at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/deploy/bare_debian.sh

skip() {
  echo "SKIPPED, NOTHING WAS TESTED: $1; remedy: $2" >&2
  exit 77
}
[ "$(id -u)" = 0 ] || skip "images are built by root here" "run it as root"
for each in debootstrap buildah runc nsenter curl; do
  command -v $each >/dev/null || skip "there is no $each" \
    "apt-get install debootstrap buildah runc util-linux curl"
done
unshare --mount true 2>/dev/null || skip "mounts are refused here" "a machine that may mount"
packages=$(realpath "$1") most_mb=150
work=$(mktemp -d "${TMPDIR:-/var/tmp}/tactus-container.XXXXXX")
name=tactus-${work##*.} runner=

say() { printf '== %s\n' "$*"; }
fail() { printf 'container: %s\n' "$1" >&2; exit 1; }
images() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
engine() { runc --root "$work/runc" "$@"; }

leave() {
  local status=$?
  if [ -n "$runner" ]; then
    engine kill "$name" KILL 2>/dev/null || true
    wait "$runner" 2>/dev/null || true
    engine delete -f "$name" 2>/dev/null || true
  fi
  images umount --all >/dev/null 2>&1 || true
  images rm --all >/dev/null 2>&1 || true
  ! grep -q " $work/" /proc/mounts || umount -l "$work"/*/* 2>/dev/null || true
  rm -rf --one-file-system "$work"
  [ $status = 0 ] || echo "container: FAILED" >&2
}
trap leave EXIT

say "an image of a bare Debian 12"
base=$(images from scratch)
folder=$(images mount "$base")
bare_debian "$folder" ca-certificates || fail "debootstrap failed (log: $folder.log)"
without=(doc info lintian locale man)
rm -rf "$folder"/var/cache/apt/* "$folder"/var/lib/apt/lists/*
printf 'path-exclude /usr/share/%s/*\n' "${without[@]}" >"$folder/etc/dpkg/dpkg.cfg.d/slim"
echo 'path-include /usr/share/doc/*/copyright' >>"$folder/etc/dpkg/dpkg.cfg.d/slim"
for each in "${without[@]}"; do
  [ ! -d "$folder/usr/share/$each" ] ||
    find "$folder/usr/share/$each" ! -type d ! -name copyright -delete
done
images umount "$base" >/dev/null
images commit --quiet "$base" localhost/bare-debian:12 >/dev/null
images rm "$base" >/dev/null

say "deploy/Containerfile"
mkdir "$work/context"
cp "$packages"/tactus_*.deb "$packages"/tactus-video_*+bookworm_*.deb "$work/context/"
images build --isolation chroot --from localhost/bare-debian:12 --tag localhost/tactus:check \
  --file deploy/Containerfile "$work/context" >"$work/build.log" 2>&1 ||
  { tail -n 20 "$work/build.log" >&2; fail "it was not built"; }
images inspect --type image localhost/tactus:check >"$work/image.json"
made=$(images from localhost/tactus:check)
folder=$(images mount "$made")

say "serve: read only, as the image's user, in a network of its own"
mkdir -p "$work/bundle" "$work/models"
cp -r models/ee_mlp "$work/models/"
add_echo "$work/models"
cp examples/pipelines/street.mjpeg "$work/models/"
# Nothing is measured here, so nothing may be late.
sed -i 's/\(slo_ms".*string_value: \)"[0-9]*"/\1"20000"/' "$work/models/ee_mlp/config.pbtxt"
chmod -R a+rX "$work/models"
python3 -B tools/deploy/bundle.py "$work/image.json" "$folder" "$work/models" \
  serve --models /models --address 0.0.0.0 --insecure >"$work/bundle/config.json"
engine run --bundle "$work/bundle" "$name" >"$work/log" 2>&1 </dev/null &
runner=$!
for ((tries = 0; tries < 480; tries++)); do
  ! grep -q '^ready ' "$work/log" || break
  kill -0 $runner 2>/dev/null || break
  sleep 0.25
done
grep -q '^ready ' "$work/log" || { cat "$work/log" >&2; fail "it did not start"; }
process=$(engine state "$name" | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')
read -r user group < <(stat -c '%u %g' "/proc/$process")
[ "$user $group" = "64000 64000" ] || fail "it runs as $user:$group"
within() { nsenter --target "$process" --net "$@"; }
within curl -fsS http://127.0.0.1:8000/v2/health/ready >/dev/null || fail "it is not ready"
python3 -c 'import json
print(json.dumps({"inputs": [{"name": "input", "shape": [1, 1, 28, 28], "datatype": "FP32",
                              "data": [0.5] * 784}]}))' >"$work/request.json"
answer=$(within curl -sS --max-time 20 -H 'Content-Type: application/json' \
  -d "@$work/request.json" http://127.0.0.1:8000/v2/models/ee_mlp/infer)
grep -q '"outputs"' <<<"$answer" || fail "no inference: $answer"
answer=$(within curl -fsS http://127.0.0.1:8002/metrics)
grep -q '^tactus_requests_total.* 1$' <<<"$answer" || fail "no metric counts it: $answer"
say "a recording, streamed to it"
engine exec "$name" tactus stream yard=/models/street.mjpeg --model echo --as-answered \
  >"$work/streamed" || { tail -n 5 "$work/streamed" >&2; fail "it streams no recording"; }
has_all_frames "$work/streamed" || fail "not all of 40 frames were answered"
# What the chart runs inside it besides.
engine exec "$name" sleep 0 || fail "there is no sleep for preStop"
engine exec "$name" tactus cluster status --help >/dev/null || fail "probes find no tactus"
! engine exec --user 0:0 "$name" touch /usr/written 2>/dev/null ||
  fail "it may write to its file system"

signal=$(python3 -B tools/deploy/bundle.py --signal "$work/image.json")
say "stop: $signal"
engine kill "$name" "$signal"
status=0
wait $runner || status=$?
runner=
[ $status = 0 ] || { cat "$work/log" >&2; fail "it ended with exit code $status"; }
version=$(sed -nE 's/^project\(tactus VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
archive=out/package/tactus-$version.oci.tar
rm -f "$archive"
images push --quiet localhost/tactus:check "oci-archive:$archive:tactus" >/dev/null
mb=$(du -m "$archive" | cut -f1)
echo "container: built, served and streamed as 64000 on a read-only file system, and ended when" \
  "told ($(du -sm "$folder" | cut -f1) MB unpacked, $mb MB as an archive)"
[ "$mb" -le $most_mb ] || fail "the archive has $mb MB, more than $most_mb"
echo "$archive"
