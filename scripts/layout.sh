#!/usr/bin/env bash
# Lays out a program by what runs: BOLT, LLVM's optimiser of linked programs, puts the code that a
# workload runs together, in the order in which it runs, and leaves the rest where it is. Then
# strips it.
#
#   scripts/layout.sh <program> <result> [<profile>]
#
# <program>: of the profile `dist`, which is linked for this (build.rs). <profile>: how often which
# code runs; if there is no such file, scripts/workload.py runs, and it is written. The same program
# and profile give the same bytes. LLVM_BOLT: the path of BOLT, if it is not Debian's bolt-19.
#
# On other machines than x86_64 it only strips.
#
# See docs/decisions/47-code-laid-out.md.
set -euo pipefail
program=$1 result=$2
here=$(dirname "$0")

if [ "$(uname -m)" != x86_64 ]; then
  echo "layout: only stripped" >&2
  strip -o "$result" "$program"
  exit
fi
# The version is fixed: another one makes other bytes.
bolt=${LLVM_BOLT:-/usr/lib/llvm-19/bin/llvm-bolt}
# GNU's strip damages what BOLT makes.
objcopy=$(rustc --print target-libdir)/../bin/rust-objcopy
for tool in "$bolt" "$objcopy"; do
  [ -x "$tool" ] || { echo "layout: $tool is missing (scripts/setup.sh dist)" >&2; exit 1; }
done
work=$(realpath "$(mktemp -d -p "$(dirname "$result")")")
trap 'rm -rf "$work"' EXIT
profile=${3:-$work/profile}
# quietly <command…>: shows its output only if it fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }

if [ ! -e "$profile" ]; then
  echo "layout: running the workload" >&2
  quietly "$bolt" "$program" --instrument --instrumentation-file="$work/counts" \
    --instrumentation-binpath="$work/instrumented" -o "$work/instrumented"
  "$here/workload.py" "$work/instrumented" "$program"
  mv "$work/counts" "$profile"
fi
quietly "$bolt" "$program" -o "$work/laid-out" --data="$profile" --reorder-blocks=ext-tsp \
  --reorder-functions=cdsort --split-functions --split-all-cold --split-eh --no-huge-pages
# A note has the options, and paths with them.
"$objcopy" --strip-all --remove-section=.note.bolt_info "$work/laid-out" "$result"
"$here/workload.py" "$result" "$program" 0.1
