#!/usr/bin/env bash
# Builds a release in dist/: an archive with the program and its files, a Debian package, SBOMs, and
# checksums. `make dist` calls it after the set-up. The same commit and the same profile of its
# workload (`tollgate-….profile.zst`) give the same bytes, which `make dist-twice` checks.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.tools/bin:$PATH"
cargo_home=${CARGO_HOME:-$HOME/.cargo}
target=${CARGO_TARGET_DIR:-$PWD/target}
version=$(cargo metadata --no-deps --locked --format-version 1 |
  python3 -c 'import json, sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "tollgate"))')
arch=$(uname -m)

# The commit that the program reports. A tree with uncommitted changes has none.
TOLLGATE_COMMIT=$(git rev-parse --short=12 HEAD)
[ -z "$(git status --porcelain)" ] || TOLLGATE_COMMIT+="-changed"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# Keep paths of the build machine out of the program.
RUSTFLAGS="--remap-path-prefix=$target=/target --remap-path-prefix=$PWD=/tollgate --remap-path-prefix=$cargo_home=/cargo"
CFLAGS="-ffile-prefix-map=$target=/target -ffile-prefix-map=$PWD=/tollgate -ffile-prefix-map=$cargo_home=/cargo"
export TOLLGATE_COMMIT SOURCE_DATE_EPOCH RUSTFLAGS CFLAGS

# LAYOUT_PROFILE: of an earlier build of this commit, whose bytes are wanted. It may lie in dist/.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
profile=$work/profile
[ -z "${LAYOUT_PROFILE:-}" ] || zstd -q -d "$LAYOUT_PROFILE" -o "$profile"

scripts/supply-chain.sh
# Build only this package: another member of the workspace would enable the feature again.
cargo build --profile dist --locked -p tollgate --bin tollgate ${MINIMAL:+--no-default-features}

# target/package: what archive and package have in common. Cargo.toml names its files for the
# package.
package=target/package
rm -rf dist $package
mkdir -p dist $package/completions
name=tollgate-$version-linux-$arch${MINIMAL:+-minimal}
if [ -n "${MINIMAL:-}" ]; then
  # The workload needs the mock.
  strip -o $package/tollgate "$target/dist/tollgate"
else
  scripts/layout.sh "$target/dist/tollgate" $package/tollgate "$profile"
  [ "$arch" != x86_64 ] || zstd -19 -q <"$profile" >"dist/$name.profile.zst"
fi
for shell in bash:tollgate.bash zsh:_tollgate fish:tollgate.fish; do
  $package/tollgate completions "${shell%%:*}" >"$package/completions/${shell##*:}"
done
$package/tollgate man $package/man
scripts/sbom.py $package
scripts/licences.py $package >$package/THIRD-PARTY.txt

mkdir "dist/$name"
cp -r $package/{tollgate,completions,man,THIRD-PARTY.txt} conf/{systemd,prometheus,grafana} \
  conf/{tollgate.yaml,gateway.schema.json} README.md CHANGELOG.md LICENSE docs "dist/$name/"
tar --directory dist --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
  -cf - "$name" | zstd -19 -q -o "dist/$name.tar.zst"
rm -r "dist/${name:?}"
cargo deb --quiet --no-build --no-strip --locked --output dist/
for sbom in tollgate tollgate-ui; do cp $package/$sbom.cdx.json "dist/$sbom-$version.cdx.json"; done
(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
