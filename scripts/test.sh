#!/usr/bin/env bash
# Everything that `make test` checks, after the set-up: format, lints, tests, the official clients
# and a browser against the built gateway. The first failure ends it. Arguments go to `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

# The Node of scripts/setup.sh, if the system's is missing or too old.
[ ! -x .tools/bin/node ] || PATH="$PWD/.tools/bin:$PATH"
export PATH

step() { printf '\n==> %s\n' "$*"; }

step format
cargo fmt --all --check
step lints
cargo clippy --locked --workspace --all-targets -- -D warnings
step documentation
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet
step documents
python3 scripts/documents.py
step "supply chain"
scripts/supply-chain.sh
# At the same time as the build of the tests, which leaves a core idle for minutes.
step "web UI, and the build of the tests"
ui_log=$(mktemp)
(cd admin && npm run --silent check && npm run --silent test) >"$ui_log" 2>&1 &
ui=$!
trap 'kill "$ui" 2>/dev/null || true; rm -f "$ui_log"' EXIT
cargo test --locked --workspace --no-run --quiet
wait "$ui" && passed=true || passed=false
cat "$ui_log"
"$passed"
# The tests wait for processes and timers more than they compute: two for each core took 5:45, one
# for each core 9:57.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
export RUST_TEST_THREADS
step tests
cargo test --locked --workspace "$@"
# Its tools exist only for this architecture.
if [ "$(uname -m)" = x86_64 ]; then
  step "files of deploy/ and workflows"
  TOLLGATE_BIN=${CARGO_TARGET_DIR:-target}/debug/tollgate scripts/test-deploy.sh
fi
# The official clients against the binary that the tests have just built. Skipped if only some tests
# were requested.
if [ $# -eq 0 ]; then
  step clients
  TOLLGATE_BIN=${CARGO_TARGET_DIR:-target}/debug/tollgate .tools/venv/bin/python -m pytest tests/sdk
  step "web UI in a browser"
  TOLLGATE_BIN=$(realpath "${CARGO_TARGET_DIR:-target}/debug/tollgate") npm run --silent --prefix admin e2e
fi
