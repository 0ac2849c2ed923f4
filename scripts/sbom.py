#!/usr/bin/env python3
"""Writes the SBOMs of a release as CycloneDX 1.5 documents.

tollgate.cdx.json has the crates of the program for this machine's target. tollgate-ui.cdx.json has
the packages of the web UI in it.

    scripts/sbom.py <folder>

Both are compared with the dependencies that Cargo and npm resolve. They are the same for the same
commit (SOURCE_DATE_EPOCH is their time). `scripts/setup.sh dist` installs cargo-cyclonedx.
"""

import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def fail(text):
    sys.exit(f"sbom: {text}")


def rust():
    """The document of the crates. cargo-cyclonedx writes one for each package of the workspace, beside
    its manifest; the bench is not part of a release."""
    target = next(line[6:] for line in output("rustc", "-vV").splitlines() if line.startswith("host: "))
    written = [ROOT / "sbom-new.json", ROOT / "bench" / "sbom-new.json"]
    try:
        output("cargo", "cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5", "--target", target,
               "--override-filename", "sbom-new")
        # Its references name the folder of the sources.
        text = written[0].read_text(encoding="utf-8").replace(f"path+file://{ROOT}", "path+file:///tollgate")
    finally:
        for file in written:
            file.unlink(missing_ok=True)
    document = json.loads(text)
    tree = output("cargo", "tree", "--locked", "--edges", "normal", "--target", target, "--prefix", "none",
                  "--package", "tollgate")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    wanted = {(name, version.removeprefix("v")) for name, version in wanted if name != "tollgate"}
    complete(document, wanted)
    return document


def web_ui():
    """The document of the web UI's packages. `npm sbom --omit dev` also omits packages that a
    development package needs as well (React itself), so the lock file decides which to keep."""
    document = json.loads(output("npm", "--prefix", "admin", "sbom", "--sbom-format", "cyclonedx", "--package-lock-only"))
    lock = json.loads((ROOT / "admin" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = {
        (path.rpartition("node_modules/")[2], entry["version"])
        for path, entry in lock.items()
        if path and not (entry.get("dev") or entry.get("devOptional") or entry.get("optional") or entry.get("peer"))
    }
    document["components"] = [part for part in document["components"] if identity(part) in wanted]
    kept = {part["bom-ref"] for part in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
    document["dependencies"] = [
        {**one, "dependsOn": [other for other in one["dependsOn"] if other in kept]}
        for one in document["dependencies"]
        if one["ref"] in kept
    ]
    complete(document, wanted)
    return document


def identity(part):
    return (f"{part['group']}/{part['name']}" if part.get("group") else part["name"], part["version"])


def complete(document, wanted):
    """Ends the program when a dependency is missing, or one has no licence."""
    parts = document["components"]
    missing = wanted - {identity(part) for part in parts}
    without = [part["name"] for part in parts if not part.get("licenses")]
    if missing or without:
        fail(f"missing {sorted(missing)}; without a licence {sorted(without)}")


def write(document, file):
    """Without a serial number, which is random, and with the commit's time."""
    document.pop("serialNumber", None)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))
    at = datetime.datetime.fromtimestamp(epoch, datetime.UTC)
    document["metadata"]["timestamp"] = at.isoformat().replace("+00:00", "Z")
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        fail("usage: scripts/sbom.py <folder>")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{ROOT / '.tools' / 'bin'}:{os.environ['PATH']}"
    crates, packages = rust(), web_ui()
    write(crates, folder / "tollgate.cdx.json")
    write(packages, folder / "tollgate-ui.cdx.json")
    print(f"sbom: {len(crates['components'])} crates, {len(packages['components'])} packages of the web UI")


main()
