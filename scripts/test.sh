#!/usr/bin/env bash
# Everything that `make test` checks, after the set-up: format, lints, tests, the official clients
# and a browser against the built gateway. The first failure ends it. Arguments go to `cargo test`;
# with them, the official clients and the browser are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

# The Node of scripts/setup.sh, if the system's is missing or too old.
[ ! -x .tools/bin/node ] || PATH="$PWD/.tools/bin:$PATH"
export PATH
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export TOLLGATE_BIN=$target/debug/tollgate
logs=$(mktemp -d)
# Process groups that still run, by name.
declare -A running=()
# shellcheck disable=SC2154 # the loop assigns it
trap 'for group in "${running[@]}"; do kill -- "-$group" 2>/dev/null || true; done; rm -rf "$logs"' EXIT

step() { printf '\n==> %s\n' "$*"; }

# beside <name> <command…>: starts the command, in a separate process group. Its output is kept.
beside() {
  local name=$1
  shift
  set -m
  "$@" >"$logs/$name" 2>&1 </dev/null &
  set +m
  running[$name]=$!
}

# finish <name>: waits for a command of beside(), prints its output, and fails if it failed.
finish() {
  local name=$1 passed=true
  wait "${running[$name]}" || passed=false
  unset "running[$name]"
  step "$name"
  cat "$logs/$name"
  $passed
}

# A checksum of the files that the checks of the web UI read; nothing without git.
ui_sources() {
  git ls-files -z --cached --others --exclude-standard -- admin tests/admin/openapi.json |
    { node --version && xargs -0 sha256sum; } | sha256sum
}

# The types, lint, format and component tests of the web UI. They are not repeated for files that
# have passed.
check_ui() {
  local sources passed=$target/web-ui-passed
  sources=$(ui_sources 2>/dev/null) || sources=
  if [ -n "$sources" ] && [ "$(cat "$passed" 2>/dev/null)" = "$sources" ]; then
    echo "the same files have passed before (to repeat the checks, remove $passed)"
    return
  fi
  (cd admin && npm run --silent check && npm run --silent test) && echo "$sources" >"$passed"
}

step format
cargo fmt --all --check
step documents
python3 scripts/documents.py
# At the same time as the compiler, which leaves a core idle for minutes.
mkdir -p "$target"
beside "web UI" check_ui
beside "supply chain" scripts/supply-chain.sh
step lints
cargo clippy --locked --workspace --all-targets -- -D warnings
step documentation
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet
step "build of the tests"
cargo test --locked --workspace --no-run --quiet
finish "supply chain"
finish "web UI"

# The tests wait for processes and timers more than they compute, so they run at the same time.
if [ $# -eq 0 ]; then
  beside "official clients" .tools/venv/bin/python -m pytest tests/sdk
  beside "web UI in a browser" npm run --silent --prefix admin e2e
fi
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
export RUST_TEST_THREADS
step tests
cargo test --locked --workspace "$@"
# Its tools exist only for this architecture.
if [ "$(uname -m)" = x86_64 ]; then
  step "files of deploy/ and workflows"
  scripts/test-deploy.sh
fi
if [ $# -eq 0 ]; then
  finish "official clients"
  finish "web UI in a browser"
fi
