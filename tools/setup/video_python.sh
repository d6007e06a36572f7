#!/usr/bin/env bash
# video_python.sh: the Python packages that read video for `./run bench video`, in
# .cache/video-python, beside those of .cache/venv (python.sh).
source "$(dirname "$0")/lib.sh"

list=$root/tools/setup/video-requirements.txt
folder=$cache/video-python
version=$(sha256sum "$list" | cut -d' ' -f1)
is_complete "$folder" "$version" && exit 0

say "installing PyAV and Pillow into .cache/video-python"
rm -rf "$folder"
"$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder" \
  --requirement "$list" >"$cache/video-pip.log" 2>&1 || {
  tail -n 10 "$cache/video-pip.log" >&2
  fail "pip could not install the packages of tools/setup/video-requirements.txt" \
    "check the network and pip's configuration (\`pip config list\`), then run again"
}
mark_complete "$folder" "$version"
