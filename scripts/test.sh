#!/usr/bin/env bash
# Everything that `make test` checks: format, lints, tests, and the official clients and a browser
# against the built gateway. It ends at the first failure. Arguments go to `cargo test`; with them,
# the official clients and the browser are left out. It requires `scripts/setup.sh test-system`.
#
# PART=lint, code, ui or deploy runs only that part: format, lints, documents and dependencies; the
# Rust tests and the official clients; the web UI, alone and in a browser; the files of deploy/.
#
# The checks of the web UI, the official clients and the browser are skipped if they passed before
# with the same files and the same program. EVERYTHING=1 repeats them.
set -euo pipefail
cd "$(dirname "$0")/.."

# For the Node of scripts/setup.sh, which it installs if the system's is missing or too old.
export PATH="$PWD/.tools/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export TOLLGATE_BIN=$target/debug/tollgate
mkdir -p "$target/passed"
logs=$(mktemp -d)
# Process groups that still run, by name.
declare -A running=()
# shellcheck disable=SC2154 # the loop assigns it
trap 'for group in "${running[@]}"; do kill -- "-$group" 2>/dev/null || true; done; rm -rf "$logs"' EXIT

# part <name>: whether this part is to run.
part() { [ -z "${PART:-}" ] || [ "$PART" = "$1" ]; }

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

# once <name> <program> <paths> <command…>: runs the command, unless it has passed with this program
# (it may be empty) and git's files below these paths, which must be all that the command reads.
# Without git, it always runs.
once() {
  local mark=$target/passed/$1 program=$2 paths=$3 now
  shift 3
  # shellcheck disable=SC2086 # several paths
  now=$({ git ls-files -z --cached --others --exclude-standard -- $paths && printf %s "$program"; } |
    { node --version && xargs -0 sha256sum; } 2>/dev/null | sha256sum) || now=
  if [ -z "${EVERYTHING:-}" ] && [ -n "$now" ] && [ "$(cat "$mark" 2>/dev/null)" = "$now" ]; then
    echo "passed before, with the same files and program (EVERYTHING=1 repeats it)"
    return
  fi
  rm -f "$mark"
  "$@"
  echo "$now" >"$mark"
}

# in_idle_time <command…>: leaves the processors to everything else.
in_idle_time() {
  renice -n 19 -p "$BASHPID" >/dev/null
  "$@"
}

# Without the fuzzer's own runtime, which only a program needs.
check_fuzz() {
  env -u RUSTC_WORKSPACE_WRAPPER RUSTFLAGS="--cfg fuzzing" CUSTOM_LIBFUZZER_PATH="$target/none" CARGO_TARGET_DIR="$target/fuzz" \
    cargo check --locked --quiet --manifest-path tests/fuzz/Cargo.toml --lib --bins
}
check_ui() { cd admin && npm run --silent check && npm run --silent test; }
install_and_check() {
  scripts/setup.sh test
  if part ui; then (once web-ui "" "admin tests/admin/openapi.json crates/formats/src/policy/select" check_ui); fi
  if part lint; then scripts/supply-chain.sh; fi
}

if part lint; then
  step format
  cargo fmt --all --check
  step documents
  python3 scripts/documents.py
fi
# Beside the compiler, which does not use both cores all the time.
beside "installation, web UI and supply chain" install_and_check
if part lint; then
  beside "fuzz targets" in_idle_time once fuzz "" "tests/fuzz src crates" check_fuzz
  export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/check-crate.sh
fi
if part lint || part code || part ui; then
  step "build, lints and documentation of the code"
  cargo build --locked --workspace --lib --bins --tests --quiet
fi
finish "installation, web UI and supply chain"

# The tests also wait for processes and timers. Measured on two cores: they are idle for a sixth of
# the time with five tests at once, for a twelfth with seven.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((7 * $(nproc) / 2))}
export RUST_TEST_THREADS
step tests
if ! part code; then
  echo "left out: PART=$PART"
elif [ $# -gt 0 ]; then
  cargo test --locked --workspace "$@"
else
  cargo test --locked --workspace -- --skip nodes::chaos
  # Alone: beside the others its nodes would count for themselves, because Redis answers too late on
  # a busy machine.
  cargo test --locked --workspace --test main nodes::chaos
fi
if part lint; then finish "fuzz targets"; fi
# Its tools exist only for this architecture.
if [ "$(uname -m)" = x86_64 ] && part deploy; then
  step "files of deploy/ and workflows"
  scripts/test-deploy.sh
fi
# Measured on two cores: these two take 4:36 together, and 2:45 and 3:04 alone. Beside the tests they
# would save no time.
if [ $# -eq 0 ] && part code; then
  beside "official clients" once clients "$TOLLGATE_BIN" "tests/sdk README.md docs" .tools/venv/bin/python -m pytest tests/sdk
fi
if [ $# -eq 0 ] && part ui; then
  step "web UI in a browser"
  once browser "$TOLLGATE_BIN" "admin tests/nodes/tls" npm run --silent --prefix admin e2e
fi
if [ -n "${running["official clients"]:-}" ]; then finish "official clients"; fi
