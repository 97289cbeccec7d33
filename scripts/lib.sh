# Sourced by the other scripts: what a machine needs, and how to get it.
# shellcheck shell=bash

# GO_NEEDED is the least version of Go that builds this.
GO_NEEDED=1.26

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# find_go puts Go in PATH; the distribution's is too old, so it is not installed from there.
find_go() {
	command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin:$HOME/go/bin
	command -v go >/dev/null || die "Go $GO_NEEDED or newer is needed: see https://go.dev/doc/install"
}

# install PACKAGE… installs the Debian packages that are missing: as root by itself, as a user it says what is missing.
install() {
	local missing=() p
	for p in "$@"; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	if [ "$(id -u)" -ne 0 ]; then
		die "these packages are missing; as root: apt-get install ${missing[*]}"
	fi
	say "installing ${missing[*]}"
	apt-get update -qq >/dev/null || true
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# open_fuse makes /dev/fuse usable: for everyone if we are root, for us in any case.
open_fuse() {
	[ -e /dev/fuse ] || { [ "$(id -u)" -eq 0 ] && modprobe fuse 2>/dev/null; } || true
	[ -e /dev/fuse ] || die "there is no /dev/fuse: load the fuse module (modprobe fuse), or give the container --device /dev/fuse"
	if [ "$(id -u)" -eq 0 ]; then
		[ "$(stat -c %a /dev/fuse)" = 666 ] || chmod 666 /dev/fuse
	else
		[ -r /dev/fuse ] && [ -w /dev/fuse ] || die "/dev/fuse may not be opened: as root, chmod 666 /dev/fuse"
		command -v fusermount3 >/dev/null || die "fusermount3 is missing: as root, apt-get install fuse3"
	fi
}
