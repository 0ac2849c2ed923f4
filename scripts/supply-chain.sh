#!/usr/bin/env bash
# Checks the dependencies: their licences, sources and known defects, and that each of them is used.
#
#   scripts/supply-chain.sh           reports a database that cannot be reached, and checks the rest
#   scripts/supply-chain.sh --strict  fails if a database cannot be reached (for a release)
#
# deny.toml has the rules, and the accepted exceptions with their reasons. `scripts/setup.sh test`
# installs the tools.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.tools/bin:$PWD/.tools/venv/bin:$PATH"
strict=${1:-}

# unchecked <what> <why>: reports a check that could not be made.
unchecked() {
  printf 'NOT CHECKED: %s: %s\n' "$1" "$2" >&2
  [ "$strict" != --strict ] || exit 1
}

cargo deny --log-level error check licenses bans sources

# The advisories are a repository that cargo-deny fetches.
if cargo deny --log-level off fetch db >/dev/null 2>&1; then
  cargo deny --log-level error check --disable-fetch advisories
else
  unchecked "known defects of Rust dependencies" "the advisory database could not be fetched"
fi

# The registry answers this. A finding is JSON with `vulnerabilities`; anything else is not an
# answer.
audit=$(npm --prefix admin audit --omit=dev --json 2>/dev/null || true)
case $(python3 -c 'import json, sys
found = json.loads(sys.argv[1]).get("metadata", {}).get("vulnerabilities")
print("none" if found is None else found["total"])' "$audit" 2>/dev/null || echo none) in
  none) unchecked "known defects of the web UI's dependencies" "the registry did not answer the audit" ;;
  0) echo "npm audit: no known defects" ;;
  *)
    npm --prefix admin audit --omit=dev >&2 || true
    exit 1
    ;;
esac

cargo shear
