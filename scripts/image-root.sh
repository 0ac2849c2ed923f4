#!/usr/bin/env bash
# Makes the files of the container image in a new folder. `root` has the program and its default
# configuration from the archive in a dist folder, and Debian 12's C library and CA certificates.
# `state` has the data directory, for the image's user. The Dockerfile and scripts/image.sh use this
# script. It needs mmdebstrap and zstd, but no privilege to mount.
#
#   scripts/image-root.sh <dist folder> <new folder>
set -euo pipefail
umask 022
fail() { echo "image-root: $*" >&2; exit 1; }
[ $# = 2 ] || fail "usage: scripts/image-root.sh <dist folder> <new folder>"
dist=$1 root=$2/root state=$2/state
[ ! -e "$2" ] || fail "$2 is there already"
for tool in mmdebstrap zstd; do command -v $tool >/dev/null || fail "$tool is missing"; done
shopt -s nullglob
archives=("$dist"/tollgate-*-linux-"$(uname -m)".tar.zst)
[ ${#archives[@]} = 1 ] || fail "$dist has ${#archives[@]} archives for $(uname -m), one is wanted: run make dist"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
# The packages are unpacked and none of their scripts run. Their other dependencies are removed
# below.
packages=(base-files ca-certificates gcc-12-base libc6 libgcc-s1)
# shellcheck disable=SC2016
if ! mmdebstrap --quiet --format=tar --variant=extract --include="$(IFS=,; echo "${packages[*]}")" --skip=cleanup/apt \
  --extract-hook='mkdir "$1/fields" && for deb in "$1"/var/cache/apt/archives/*.deb; do
    dpkg-deb --field "$deb" >"$1/fields/$(dpkg-deb --field "$deb" Package)"; done' bookworm "$work/debian.tar" 2>"$work/said"; then
  fail "Debian's packages cannot be had: $(tail -n 1 "$work/said")"
fi
mkdir "$work/debian"
tar --directory "$work/debian" --no-same-owner --exclude=./dev -xf "$work/debian.tar"

mkdir -p "$root"/{dev,proc,sys,run,usr/bin,usr/lib,usr/share/doc,etc/ssl/certs,etc/tollgate,var/lib/dpkg/status.d,var/tmp}
mkdir "$root/tmp"
chmod 1777 "$root/tmp" "$root/var/tmp"
cp -a "$work"/debian/lib* "$root/"
cp -a "$work/debian/usr/lib/os-release" "$root/usr/lib/"
cp -a "$work"/debian/etc/{debian_version,os-release} "$root/etc/"
cp -a "$work/debian/usr/share/common-licenses" "$root/usr/share/"
for package in "${packages[@]}"; do
  mkdir -p "$root/usr/share/doc/$package"
  # libgcc-s1's folder is a link to gcc-12-base's.
  cp -L "$work/debian/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/"
  # As in distroless images: scanners read the versions here.
  cp "$work/debian/fields/$package" "$root/var/lib/dpkg/status.d/"
done
# The file that update-ca-certificates would make.
find "$work/debian/usr/share/ca-certificates/mozilla" -name '*.crt' -print0 | LC_ALL=C sort -z |
  xargs -0 cat >"$root/etc/ssl/certs/ca-certificates.crt"
[ "$(grep -c 'BEGIN CERTIFICATE' "$root/etc/ssl/certs/ca-certificates.crt")" -ge 50 ] || fail "there are no CA certificates"
printf 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/var/lib/tollgate:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"

mkdir "$work/release"
tar --directory "$work/release" --strip-components=1 --use-compress-program=unzstd -xf "${archives[0]}"
install -m 0755 "$work/release/tollgate" "$root/usr/bin/tollgate"
install -m 0644 "$work/release/tollgate.yaml" "$root/etc/tollgate/tollgate.yaml"
install -D -m 0644 -t "$root/usr/share/doc/tollgate" "$work/release/LICENSE" "$work/release/THIRD-PARTY.txt"
# The only folder that the program writes to.
mkdir -p "$state/tollgate"
chmod 0700 "$state/tollgate"
