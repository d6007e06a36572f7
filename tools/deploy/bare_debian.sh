# bare_debian FOLDER PACKAGES: makes FOLDER the root of a bare Debian 12 with PACKAGES (names with
# commas), whose apt goes where this machine's goes. What debootstrap says is in FOLDER.log, until
# it succeeds. Sourced, never run; needs root.
bare_debian() {
  local root=$1 mirror file
  mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && !found { print $1; found = 1 }')
  debootstrap --variant=minbase --include="$2" bookworm "$root" \
    ${mirror:+"$mirror"} >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; return 1; }
  rm -f "$root.log"
  # The network, and where apt goes, as on this machine; only Debian's own suites.
  for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt \
    /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d; do
    [ -e "$file" ] || continue
    mkdir -p "$root${file%/*}"
    cp -aL "$file" "$root${file%/*}/"
  done
  grep -rL /debian "$root/etc/apt/sources.list.d" 2>/dev/null | xargs -r rm -f
  [ ! -e "$root/etc/apt/sources.list.d/debian.sources" ] || : >"$root/etc/apt/sources.list"
}
