"""Runs a client program as a user would, in an empty home and working folder, with a time-out."""

import json
import os
import pathlib
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN_SECONDS = 300
# The time-out of a refused run. The start may be slow; the measured time begins with the first request.
REFUSED_SECONDS = 140
SCREEN_SECONDS = 60
# The command for the programs' shell tools, and its output, which proves that it ran.
COMMAND = "echo made > made.txt && seq -s - 40 42"
PRINTED = "40-41-42"

# Reports and updates of Claude Code are off.
QUIET_CLAUDE = {name: "1" for name in ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER",
                                       "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY")}


def codex_program(folder, base, key):
    """Codex with a gateway as its provider, and the default number of retries."""
    program = Program("codex", folder, {"GATEWAY_KEY": key})
    (program.home / ".codex").mkdir()
    (program.home / ".codex/config.toml").write_text(f"""
model_provider = "gateway"
check_for_update_on_startup = false
[features]
apps = false
plugins = false
[analytics]
enabled = false
[model_providers.gateway]
name = "gateway"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "GATEWAY_KEY"
""")
    return program


class Program:
    """One client program. `home` and `work` are its folders."""

    def __init__(self, name, folder, environment):
        self.home, self.work, temporary = folder / "home", folder / "work", folder / "tmp"
        for made in (self.home, self.work, temporary):
            made.mkdir()
        self.path = find(name)
        # Codex and Gemini CLI start through the node on the path.
        path = f"{ROOT / '.tools/bin'}:{os.environ['PATH']}"
        own = {"PATH": path, "HOME": str(self.home), "TMPDIR": str(temporary), "TERM": "dumb"}
        self.environment = own | environment

    def run(self, *arguments):
        """The output of one run; fails if the program fails."""
        done = subprocess.run([self.path, *arguments], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=RUN_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *arguments):
        """The output of a run that must fail."""
        done = subprocess.run([self.path, *arguments], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=REFUSED_SECONDS)
        assert done.returncode != 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def terminal(self, *arguments):
        """The program in a terminal of its own."""
        return Terminal([self.path, *arguments], self.environment | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}, self.work)

    def events(self, *arguments):
        """The same, as one JSON value per line."""
        return [json.loads(line) for line in self.run(*arguments).splitlines() if line.startswith("{")]

    def made(self):
        """The content of the file that the command wrote."""
        return (self.work / "made.txt").read_text()


class Terminal:
    """A program in a terminal, by a tmux server of its own that ends with the block."""

    def __init__(self, command, environment, folder):
        self.tmux = ["tmux", "-S", str(folder.parent / "tmux"), "-f", "/dev/null"]
        variables = [f"{name}={value}" for name, value in environment.items()]
        size = ["-x", "150", "-y", "50", "-c", str(folder)]
        self.start = ["new-session", "-d", *size, "env", "-i", *variables, *command]

    def __enter__(self):
        self.say(*self.start)
        return self

    def __exit__(self, *_):
        self.say("kill-server")

    def say(self, *words):
        return subprocess.run([*self.tmux, *words], check=True, capture_output=True, text=True, timeout=RUN_SECONDS).stdout

    def screen(self, *texts):
        """The screen, once it shows one of the texts. Line breaks count as blanks."""
        end = time.monotonic() + SCREEN_SECONDS
        while True:
            shown = " ".join(self.say("capture-pane", "-p").split())
            if any(text in shown for text in texts):
                return shown
            assert time.monotonic() < end, shown
            time.sleep(0.1)

    def type(self, text):
        self.say("send-keys", "-l", text)
        self.screen(text[-20:])
        # Programs take an Enter that follows at once for a part of pasted text.
        time.sleep(1)
        self.say("send-keys", "Enter")


def find(name):
    """The program from the set-up, or from the path."""
    here = os.environ.get("TOLLGATE_TEST_NODE_BIN", ROOT / ".tools/node/node_modules/.bin")
    found = shutil.which(name, path=str(here)) or shutil.which(name)
    assert found, f"{name} is not installed: run scripts/setup.sh test"
    return found
