#!/usr/bin/env bash
# Cargo calls this in place of rustc for the crates of the workspace (RUSTC_WORKSPACE_WRAPPER in
# scripts/test.sh). It compiles the crate, and beside that checks it with clippy and its comments
# with rustdoc. All three use the same compiled dependencies: `cargo clippy` and `cargo doc` would
# compile them again, which takes a minute on two quiet cores.
#
#   scripts/check-crate.sh <rustc> <its arguments…>
set -euo pipefail
rustc=$1
shift

# The arguments for clippy and rustdoc: without rustc's message formats and output paths.
lints=() comments=()
both() {
  lints+=("$@")
  comments+=("$@")
}
crate='' kind='' test='' compiles='' out='' suffix=''
given=("$@")
for ((n = 0; n < $#; n++)); do
  argument=${given[n]}
  case $argument in
    --emit=*) compiles=yes ;;
    --error-format=* | --json=*) ;;
    --test)
      test=yes
      lints+=("$argument")
      ;;
    --out-dir) out=${given[++n]} ;;
    -C)
      value=${given[++n]}
      case $value in
        extra-filename=*) suffix=${value#*=} ;;
        incremental=*) ;;
        *) lints+=(-C "$value") ;;
      esac
      ;;
    --crate-name)
      crate=${given[++n]}
      both "$argument" "$crate"
      ;;
    --crate-type)
      kind=${given[++n]}
      both "$argument" "$kind"
      ;;
    *) both "$argument" ;;
  esac
done
# Without --emit, Cargo asks about the compiler and compiles nothing.
[ -n "$compiles" ] || exec "$rustc" "$@"

scratch=$(mktemp -d)
# shellcheck disable=SC2046 # several processes
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
checks=()
# beside <name> <command…>: starts the command. Its output is kept.
beside() {
  local name=$1
  shift
  "$@" >"$scratch/$name.log" 2>&1 &
  checks+=($!)
}
# rustc compiles a library with and without its tests. The build with them has all its code, so
# clippy checks only that one.
if [ "$kind" != lib ]; then
  beside lints clippy-driver "$rustc" "${lints[@]}" -D warnings --emit=metadata --out-dir "$scratch"
fi
# As `cargo doc`: no build scripts, and no program with the name of a library. The comments of a
# program may link to private items.
case $test:$kind:$crate in
  yes:* | *:build_script_build | :bin:tollgate) ;;
  *)
    [ "$kind" = lib ] || comments+=(-A rustdoc::private-intra-doc-links)
    beside comments rustdoc -D warnings "${comments[@]}" --document-private-items --out-dir "$scratch/doc"
    ;;
esac

"$rustc" "$@" -D warnings
passed=true
for check in "${checks[@]}"; do wait "$check" || passed=false; done
cat "$scratch"/*.log >&2
# Files that the result depends on, besides the sources that rustc lists in the first line.
sed -i "1s|\$| $PWD/clippy.toml $PWD/scripts/check-crate.sh|" "$out/$crate$suffix.d"
$passed
