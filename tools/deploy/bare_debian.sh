# Bare Debians in folders, for the checks of what we package. Sourced, never run; needs root.

# may_make_bare_debian: ends the script with exit code 77 where none can be made, and says why.
may_make_bare_debian() {
  local why=''
  [ "$(id -u)" = 0 ] || why="a bare Debian is made by root; remedy: run it as root"
  command -v debootstrap >/dev/null || why="no debootstrap; remedy: apt-get install debootstrap"
  [ -n "$why" ] || unshare --mount true 2>/dev/null ||
    why="mounts are refused here; remedy: a machine that may mount"
  [ -z "$why" ] || { echo "SKIPPED, NOTHING WAS TESTED: $why" >&2; exit 77; }
}

# bare_debian FOLDER PACKAGES [SUITE]: makes FOLDER the root of a bare Debian 12, or of another
# suite, with PACKAGES (names with commas), whose apt goes where this machine's goes (of another
# suite: where debootstrap's did). What debootstrap says is in FOLDER.log, until it succeeds.
bare_debian() {
  local root=$1 suite=${3:-bookworm} mirror file
  mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && !found { print $1; found = 1 }')
  debootstrap --variant=minbase --include="$2" "$suite" "$root" \
    ${mirror:+"$mirror"} >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; return 1; }
  rm -f "$root.log"
  # The network, and where apt goes, as on this machine; only Debian's own suites.
  local files=(/etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt)
  [ "$suite" != bookworm ] ||
    files+=(/etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d)
  for file in "${files[@]}"; do
    [ -e "$file" ] || continue
    mkdir -p "$root${file%/*}"
    cp -aL "$file" "$root${file%/*}/"
  done
  [ "$suite" = bookworm ] || return 0
  grep -rL /debian "$root/etc/apt/sources.list.d" 2>/dev/null | xargs -r rm -f
  [ ! -e "$root/etc/apt/sources.list.d/debian.sources" ] || : >"$root/etc/apt/sources.list"
}

# add_echo MODELS: a model there that answers with the JPEG that it gets, to stream a recording to.
add_echo() {
  mkdir -p "$1/echo/1"
  cat >"$1/echo/config.pbtxt" <<'P'
platform: "identity"
input { name: "jpeg" data_type: TYPE_UINT8 dims: -1 }
output { name: "jpeg" data_type: TYPE_UINT8 dims: -1 }
parameters { key: "slo_ms" value: { string_value: "20000" } }
P
}
# has_all_frames FILE: whether `tactus stream yard=...street.mjpeg` printed 40 answers there.
has_all_frames() { [ "$(grep -c '^{"stream":"yard","frame":' "$1")" = 40 ]; }
