#!/usr/bin/env bash
# Builds the release of this commit twice, from two clones in two folders with two target folders,
# and compares every byte. Takes two complete builds.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain)" ] || { echo "dist-twice: commit first: only a commit can be built twice" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in first second_in_a_longer_folder; do
  git clone --quiet --no-local . "$work/$clone"
  # The tools are installed once.
  mkdir -p "$work/$clone/.tools"
  cp -r .tools/bin .tools/venv "$work/$clone/.tools/"
  # The second program is laid out by the first one's profile.
  profile=$(compgen -G "$work/first/dist/*.profile.zst" || true)
  env -u CARGO_TARGET_DIR LAYOUT_PROFILE="$profile" make --no-print-directory -C "$work/$clone" dist
done
diff "$work/first/dist/SHA256SUMS" "$work/second_in_a_longer_folder/dist/SHA256SUMS"
echo "dist-twice: both builds are the same"
