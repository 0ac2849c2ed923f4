#!/usr/bin/env python3
"""Packs the files of the container image into an OCI archive.

The last stage of the Dockerfile defines the image: copied files and their owners, user,
environment, ports, volume, health check, entry point.

    scripts/oci.py <folder of image-root.sh> <name:tag> <archive.tar> [label=value…]

The archive holds an OCI layout and the manifest.json that older `docker load` reads. podman, skopeo
and buildah read it as `oci-archive:`. The same files at the same SOURCE_DATE_EPOCH give the same
bytes.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def fail(text):
    sys.exit(f"oci: {text}")


def instructions(dockerfile):
    """(name, value) of every instruction of the last stage."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(encoding="utf-8"), flags=re.M).replace("\\\n", " ")
    found = []
    for line in filter(str.strip, text.splitlines()):
        name, _, value = line.strip().partition(" ")
        if name == "FROM":
            found = []
            if value != "scratch":
                continue
        found.append((name, value.strip()))
    if not found or found[0] != ("FROM", "scratch"):
        fail(f"the last stage of {dockerfile.name} is not FROM scratch")
    return found[1:]


def duration(text):
    amount, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(amount) * UNITS[unit]


def health_check(value):
    options, _, command = value.partition("CMD ")
    known = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod"}
    check = {"Test": ["CMD", *json.loads(command)]}
    for name, given in re.findall(r"--([a-z-]+)=(\S+)", options):
        if name == "retries":
            check["Retries"] = int(given)
        else:
            check[known[name]] = duration(given)
    return check


def settings(dockerfile):
    """The image's settings, and the copied files: (source, target, user, group)."""
    config, copies = {"Env": []}, []
    for name, value in instructions(dockerfile):
        match name:
            case "USER" | "STOPSIGNAL":
                config[{"USER": "User", "STOPSIGNAL": "StopSignal"}[name]] = value
            case "WORKDIR":
                config["WorkingDir"] = value
            case "ENV":
                config["Env"] += value.split()
            case "EXPOSE":
                config["ExposedPorts"] = {port: {} for port in value.split()}
            case "VOLUME":
                config["Volumes"] = {path: {} for path in json.loads(value)}
            case "ENTRYPOINT" | "CMD":
                config[name.capitalize()] = json.loads(value)
            case "HEALTHCHECK":
                # Not in the OCI specification, but engines read it here.
                config["Healthcheck"] = health_check(value)
            case "COPY":
                copy = re.fullmatch(r"--from=root (?:--chown=(\d+):(\d+) )?/image/(\S+)/ /(\S*?)/?", value)
                if not copy:
                    fail(f"{dockerfile.name}: COPY {value} is not known here")
                copies.append((copy[3], pathlib.PurePath(copy[4]), int(copy[1] or 0), int(copy[2] or 0)))
            case _:
                fail(f"{dockerfile.name}: {name} in the last stage is not known here")
    return config, copies


def layer(folder, copies, epoch):
    """The copied files as a tar archive, in a fixed order and with one time."""
    entries = {}
    for source, target, user, group in copies:
        if not (folder / source).is_dir():
            fail(f"{folder} has no folder {source}")
        for path in (folder / source).rglob("*"):
            entries[str(target / path.relative_to(folder / source))] = (path, user, group)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, (path, user, group) in sorted(entries.items()):
            entry = archive.gettarinfo(path, arcname=name)
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = user, group, "", "", epoch
            if entry.isreg():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            elif entry.isdir() or entry.issym():
                archive.addfile(entry)
            else:
                fail(f"{path} is neither file, folder nor link")
    return packed.getvalue()


def main():
    if len(sys.argv) < 4:
        fail("usage: scripts/oci.py <folder> <name:tag> <archive.tar> [label=value…]")
    folder, name, target = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    created = datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config, copies = settings(ROOT / "Dockerfile")
    config["Labels"] = dict(label.split("=", 1) for label in sys.argv[4:])

    blobs = {}

    def blob(content, media_type):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    unpacked = layer(folder, copies, epoch)
    packed = blob(gzip.compress(unpacked, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    described = {
        "created": created,
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(unpacked).hexdigest()}"]},
        "history": [{"created": created, "created_by": "scripts/oci.py"}],
    }
    as_json = lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    inner = blob(as_json(described), "application/vnd.oci.image.config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": inner, "layers": [packed]}
    outer = blob(as_json(manifest), manifest["mediaType"])
    outer["annotations"] = {"org.opencontainers.image.ref.name": name.rpartition(":")[2], "io.containerd.image.name": name}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [outer]}
    where = lambda described: "blobs/sha256/" + described["digest"].removeprefix("sha256:")
    files = {
        "oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": as_json(index),
        "manifest.json": as_json([{"Config": where(inner), "RepoTags": [name], "Layers": [where(packed)]}]),
        **{f"blobs/sha256/{digest}": content for digest, content in blobs.items()},
    }
    unfinished = target.with_name(target.name + ".new")
    with tarfile.open(unfinished, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))
    unfinished.replace(target)
    print(f"{target}  {outer['digest']}  {target.stat().st_size / 1e6:.1f} MB")


main()
