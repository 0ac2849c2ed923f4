#!/usr/bin/env python3
"""Prints a part of an image's configuration for scripts/test-image.sh, with a zero byte after each
word.

scripts/image-config.py <configuration.json> user|command|health|environment|rest
"""

import json
import pathlib
import sys

config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["config"]
words = {
    "user": lambda: config["User"].split(":"),
    "command": lambda: config["Entrypoint"] + config["Cmd"],
    "health": lambda: config["Healthcheck"]["Test"][1:],
    "environment": lambda: config["Env"],
    "rest": lambda: [json.dumps(config.get(name), sort_keys=True) + "\n" for name in ("Healthcheck", "ExposedPorts", "Volumes", "WorkingDir", "StopSignal")],
}[sys.argv[2]]()
sys.stdout.write("".join(word + "\0" for word in words))
