#!/usr/bin/env bash
# Builds the container image of the release in dist/ as an OCI archive beside it, from Debian
# packages, without a container engine and without a registry. The Dockerfile defines its content;
# `docker build` makes the same image. `make image` calls this after the set-up. Run `make dist`
# before.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "image: $*" >&2; exit 1; }
arch=$(uname -m)
shopt -s nullglob
archives=(dist/tollgate-*-linux-"$arch".tar.zst)
[ ${#archives[@]} = 1 ] || fail "dist/ has ${#archives[@]} archives for $arch, one is wanted: run make dist"
version=$(basename "${archives[0]}" "-linux-$arch.tar.zst")
version=${version#tollgate-}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
# Nothing is mounted below this folder; a mount would not be removed.
trap 'rm -rf --one-file-system "$work"' EXIT
scripts/image-root.sh dist "$work/image"
commit=$("$work/image/root/usr/bin/tollgate" --version | sed -n 's/.*(commit \(.*\))$/\1/p')
python3 scripts/oci.py "$work/image" "tollgate:$version" "dist/tollgate-$version-linux-$arch.oci.tar" \
  "org.opencontainers.image.title=tollgate" "org.opencontainers.image.version=$version" \
  "org.opencontainers.image.revision=$commit" "org.opencontainers.image.licenses=Apache-2.0"
