#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (default 30), one after the other, or those that are named
# as arguments. Stops at the first finding; its input then lies in artifacts/<target>/, and
#   cargo fuzz run --sanitizer none --fuzz-dir tests/fuzz <target> <input>
# shows it again. No sanitizer: the code has no unsafe blocks, and without one the stable toolchain
# will do.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PWD/.tools/venv/bin:$PATH"
tests/fuzz/corpus.sh
[ $# -gt 0 ] || set -- request reply stream peek usage sse heads bodies journal redis
for target; do
  # Most targets are built of the pure modules alone, in seconds; these of the whole gateway.
  features=()
  case $target in bodies | redis) features=(--features gateway) ;; esac
  cargo fuzz run "${features[@]}" --sanitizer none --fuzz-dir tests/fuzz "$target" -- \
    -max_total_time="${FUZZ_SECONDS:-30}" -dict=tests/fuzz/words.dict -max_len=16384 -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1
done
