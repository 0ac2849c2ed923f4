"""Runs a client program as a user would, but in an empty home and an empty folder, and for a bounded time."""

import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN_SECONDS = 300
# Of a run that is refused: its start may be slow, and what is measured begins with its first request.
REFUSED_SECONDS = 140
# What the programs' shell tools are told to run, and what that prints: proof that it ran.
COMMAND = "echo made > made.txt && seq -s - 40 42"
PRINTED = "40-41-42"


class Program:
    """One client program. `home` and `work` are its folders."""

    def __init__(self, name, folder, environment):
        self.home, self.work, temporary = folder / "home", folder / "work", folder / "tmp"
        for made in (self.home, self.work, temporary):
            made.mkdir()
        self.path = find(name)
        # Codex and Gemini CLI start by way of the path's node.
        path = f"{ROOT / '.tools/bin'}:{os.environ['PATH']}"
        own = {"PATH": path, "HOME": str(self.home), "TMPDIR": str(temporary), "TERM": "dumb"}
        self.environment = own | environment

    def run(self, *arguments):
        """Everything that one run printed; fails when the program does."""
        done = subprocess.run([self.path, *arguments], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=RUN_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *arguments):
        """Everything that a run printed which must not succeed."""
        done = subprocess.run([self.path, *arguments], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=REFUSED_SECONDS)
        assert done.returncode != 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def events(self, *arguments):
        """The same, as one JSON value per line."""
        return [json.loads(line) for line in self.run(*arguments).splitlines() if line.startswith("{")]

    def made(self):
        """What the command wrote into its file."""
        return (self.work / "made.txt").read_text()


def find(name):
    """Where the set-up puts it, or on the path."""
    here = os.environ.get("TOLLGATE_TEST_NODE_BIN", ROOT / ".tools/node/node_modules/.bin")
    found = shutil.which(name, path=str(here)) or shutil.which(name)
    assert found, f"{name} is not installed: run scripts/setup.sh test"
    return found
