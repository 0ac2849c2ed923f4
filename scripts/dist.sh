#!/usr/bin/env bash
# Builds a release into dist/: the program, its SBOMs and the checksums of all. `make dist` calls it after the set-up.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/supply-chain.sh
cargo build --profile dist --locked --workspace --bin tollgate
rm -rf dist
mkdir dist
strip -o dist/tollgate "${CARGO_TARGET_DIR:-target}/dist/tollgate"
scripts/sbom.sh dist
(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
