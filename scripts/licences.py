#!/usr/bin/env python3
"""Prints the licences of all components of a release.

For each crate and each package of the web UI it prints name, version and licence. The licence texts
that they contain follow, each text once.

    scripts/licences.py <folder with tollgate.cdx.json and tollgate-ui.cdx.json>
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("license", "licence", "copying", "notice", "unlicense", "copyright")


def components(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))["components"]


def licence(part):
    told = [one.get("expression") or one["license"].get("id") or one["license"]["name"] for one in part["licenses"]]
    return " AND ".join(told)


def texts(folder):
    """The licence texts in the folder of a package."""
    if not folder.is_dir():
        sys.exit(f"licences: no folder {folder}")
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name.lower().startswith(NAMES))
    return [file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip() for file in files]


def crates(folder):
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    where = {(p["name"], p["version"]): pathlib.Path(p["manifest_path"]).parent for p in json.loads(told)["packages"]}
    for part in components(folder, "tollgate.cdx.json"):
        yield part["name"], part["version"], licence(part), texts(where[part["name"], part["version"]])


def packages(folder):
    lock = json.loads((ROOT / "admin" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    where = {(path.rpartition("node_modules/")[2], entry["version"]): path for path, entry in lock.items() if path}
    for part in components(folder, "tollgate-ui.cdx.json"):
        name = f"{part['group']}/{part['name']}" if part.get("group") else part["name"]
        yield name, part["version"], licence(part), texts(ROOT / "admin" / where[name, part["version"]])


def main():
    folder = pathlib.Path(sys.argv[1])
    users = {}
    print("tollgate contains the following software.\n")
    for name, version, terms, found in [*crates(folder), *packages(folder)]:
        print(f"{name} {version}: {terms}")
        for text in found:
            users.setdefault(text, []).append(name)
    for text, names in users.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n\n{text}")


main()
