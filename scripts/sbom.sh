#!/usr/bin/env bash
# Writes what the release is made of, as CycloneDX documents: of the Rust program for this machine's target, and of the
# production packages of the web UI that is inside it. Checks that no dependency is missing.
#
#   scripts/sbom.sh <folder>   writes tollgate.cdx.json and tollgate-ui.cdx.json there
#
# `scripts/setup.sh dist` installs cargo-cyclonedx.
set -euo pipefail
folder=$(realpath -m "${1:?usage: scripts/sbom.sh <folder>}")
cd "$(dirname "$0")/.."
PATH="$PWD/.tools/bin:$PATH"
mkdir -p "$folder"

target=$(rustc -vV | sed -n 's/^host: //p')
# One document for each package of the workspace, beside its manifest; the bench is not part of a release.
cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$target" --describe crate --override-filename sbom-new
mv sbom-new.json "$folder/tollgate.cdx.json"
rm -f bench/sbom-new.json
npm --prefix admin sbom --sbom-format cyclonedx --omit dev --package-lock-only 2>/dev/null >"$folder/tollgate-ui.cdx.json"

# Both against what Cargo and npm resolve.
python3 - "$folder" "$target" <<'PY'
import json, subprocess, sys

folder, target = sys.argv[1:]


def components(name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return json.load(file)["components"]


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


rust = components("tollgate.cdx.json")
tree = lines("cargo", "tree", "--locked", "--edges", "normal", "--target", target, "--prefix", "none", "--package", "tollgate")
wanted = {tuple(line.split()[:2]) for line in tree if line} - {("tollgate", "v0.1.0")}
wanted = {(name, version.lstrip("v")) for name, version in wanted if name != "tollgate"}
listed = {(part["name"], part["version"]) for part in rust}
missing = wanted - listed
without = [part["name"] for part in rust if not part.get("licenses")]
if missing or without:
    sys.exit(f"sbom: missing {sorted(missing)}; without a licence {sorted(without)}")

with open("admin/package-lock.json", encoding="utf-8") as file:
    lock = json.load(file)["packages"]
wanted = {
    (path.rpartition("node_modules/")[2], entry["version"])
    for path, entry in lock.items()
    if path and not (entry.get("dev") or entry.get("devOptional") or entry.get("optional") or entry.get("peer"))
}
ui = components("tollgate-ui.cdx.json")
listed = {(f"{part['group']}/{part['name']}" if part.get("group") else part["name"], part["version"]) for part in ui}
missing = wanted - listed
if missing:
    sys.exit(f"sbom: missing packages of the web UI {sorted(missing)}")
print(f"sbom: {len(rust)} crates, {len(ui)} packages of the web UI")
PY
