#!/usr/bin/env bash
# `make hooks` installs this as the pre-commit hook. It checks formats and documents within seconds.
# It builds nothing and runs no test; `make test` does that. It checks the working tree, not the
# index. `git commit --no-verify` skips it.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
[ ! -x .tools/bin/node ] || PATH="$PWD/.tools/bin:$PATH"

staged() { git diff --cached --name-only --diff-filter=ACMR -- "$@" | grep -q .; }
fail() { printf 'pre-commit: %s\n' "$*" >&2; exit 1; }

git diff --cached --check -- ':!tests/golden' || fail "white space at the end of a line, or a conflict marker"
! staged '*.rs' || cargo fmt --all --check >/dev/null || fail "run: make fmt"
! staged '*.md' docs scripts/pictures.py Cargo.toml || python3 scripts/documents.py
if staged admin && [ -x admin/node_modules/.bin/biome ]; then
  (cd admin && node_modules/.bin/biome check . >/dev/null) || fail "run: npm run fix --prefix admin"
fi
