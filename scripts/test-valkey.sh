#!/usr/bin/env bash
# Runs the tests that use Redis against Valkey: the limits, several nodes, a cluster, Sentinels,
# chaos. The tests call `redis-server` and `redis-cli`; here these names are Valkey's programs.
# `make test-valkey` calls it after the set-up.
set -euo pipefail
cd "$(dirname "$0")/.."

names=$(mktemp -d)
trap 'rm -rf "$names"' EXIT
PATH="$PWD/.tools/valkey/usr/bin:$PATH"
for program in server cli; do
  printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v valkey-$program)" >"$names/redis-$program"
  chmod +x "$names/redis-$program"
done
export PATH="$names:$PATH"
redis-server --version
redis-server --version | grep -q '^Valkey' || { echo "test-valkey: this is not Valkey" >&2; exit 1; }

# As in scripts/test.sh.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((7 * $(nproc) / 2))}
cargo test --locked --workspace --lib -- limits::
cargo test --locked --workspace --test main -- \
  nodes:: limits:: settings::redis:: doctor:: backup::drill:: import::switched::
