"""Runs the administration chapters and the README's quick start, command by command, against a new gateway.

The shell blocks of a chapter run as written; only addresses and the program's path are replaced. Every operation must
succeed, except those that the chapter shows as refused. The shown parts of a reply must be in the actual reply.
"""

import os
import re
import subprocess

import pytest
from conftest import ROOT, free_ports, program, start, stop
from launch import QUIET_CLAUDE, Program

RUN_SECONDS = 180
CHAPTERS = {
    "docs/getting-started.md": "## First key and provider in five minutes",
    "docs/administration.md": "## By curl",
}


def chapter(file):
    """The chapter's text, up to the next one of its level."""
    text = (ROOT / file).read_text(encoding="utf-8")
    heading = CHAPTERS[file]
    assert heading in text, f"{file} has no chapter {heading!r}"
    return text.split(heading + "\n", 1)[1].split("\n## ", 1)[0]


def blocks(text, language):
    """The contents of the fences of this language ("" for replies), in order."""
    found, inside = [], None
    for line in text.splitlines():
        if not line.startswith("```"):
            if inside == language:
                found[-1].append(line)
        elif inside is None:
            inside = line.removeprefix("```")
            if inside == language:
                found.append([])
        else:
            inside = None
    return ["\n".join(lines) for lines in found]


@pytest.fixture
def gateway(tmp_path):
    """A new gateway without configuration, as `make run` starts it. Returns the replacements for the chapter's addresses."""
    proxy, admin, metrics, mock = (f"127.0.0.1:{port}" for port in free_ports(4))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TOLLGATE_PROXY_ADDR": proxy,
        "TOLLGATE_ADMIN_ADDR": admin,
        "TOLLGATE_METRICS_ADDR": metrics,
        "TOLLGATE_DATA_DIR": str(tmp_path / "data"),
        "TOLLGATE_SHUTDOWN_GRACE": "5s",
        "TOLLGATE_PRICES_SYNC": "off",
        "TZ": "UTC",
    }
    with open(tmp_path / "log", "w+", encoding="utf-8") as log:
        process = start([str(program()), "serve"], environment, log, f"http://{metrics}/readyz")
        try:
            yield {"127.0.0.1:8080": proxy, "127.0.0.1:8081": admin, "127.0.0.1:9100": mock,
                   "target/debug/tollgate": str(program())}
        finally:
            stop(process)


def shown_names(text):
    """The names of members in the answers that the chapter shows."""
    return set(re.findall(r'"(\w+)":', "\n".join(blocks(text, ""))))


@pytest.mark.parametrize("file", CHAPTERS)
def test_the_chapter_does_what_it_says(file, gateway, tmp_path):
    text = chapter(file)
    commands = "\n".join(blocks(text, "sh"))
    # The mock listens after a moment, which a reader does not notice.
    commands = re.sub(r"^(.* mock --addr (\S+) &)$",
                      r"\1\nuntil curl -sf -o /dev/null http://\2/mock/stats; do sleep 0.05; done", commands, flags=re.MULTILINE)
    for written, meant in gateway.items():
        assert written in commands, f"{file} no longer names {written}"
        commands = commands.replace(written, meant)
    # Only an interactive shell numbers its jobs.
    script = "set -euo pipefail -m\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + commands
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=RUN_SECONDS, check=False)
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    refused = re.findall(r'\{"ok":false.*', said)
    expected = [line for line in "\n".join(blocks(text, "")).splitlines() if line.startswith('{"ok":false')]
    assert refused == expected, said
    assert said.count('{"ok":true') >= 10
    assert '"house-model"' in said or "claude-sonnet-4-5" in said
    missing = {name for name in shown_names(text) if f'"{name}":' not in said}
    assert not missing, f"{file} shows {missing}, which no answer has:\n{said}"
    for line in "\n".join(blocks(text, "")).splitlines():
        if re.fullmatch(r"\d{3}", line):
            assert line in said.splitlines(), f"{file} shows {line}:\n{said}"


def test_the_quick_start_of_the_readme_ends_in_an_answer(gateway, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## Quick start\n", 1)[1].split("\n## ", 1)[0]
    script = blocks(text, "sh")[-1]
    replaced = {"https://api.anthropic.com": f"http://{gateway['127.0.0.1:9100']}", "YOUR-PROVIDER-KEY": "provider-key",
                "127.0.0.1:8080": gateway["127.0.0.1:8080"], "127.0.0.1:8081": gateway["127.0.0.1:8081"]}
    for written, meant in replaced.items():
        assert written in script, f"the README no longer names {written}"
        script = script.replace(written, meant)
    set_up, _, last = script.strip().rpartition("\n")
    assert last.endswith("claude -p 'Say hello.'")
    with open(tmp_path / "mock.log", "w+", encoding="utf-8") as log:
        address = gateway["127.0.0.1:9100"]
        mock = start([str(program()), "mock", "--addr", address], {"PATH": os.environ["PATH"]}, log, f"http://{address}/mock/stats")
        try:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", set_up], cwd=tmp_path, capture_output=True, text=True,
                                  timeout=RUN_SECONDS, check=True)
            key = re.search(r'"key":"(sk-[0-9a-f]{32})"', done.stdout)
            assert done.stdout.count('{"ok":true') == 2 and key, done.stdout
            claude = Program("claude", tmp_path, QUIET_CLAUDE)
            command = last.replace("sk-THE-USERS-KEY", key[1]).replace("claude -p", f"{claude.path} -p")
            said = subprocess.run(["bash", "-c", command], cwd=claude.work, env=claude.environment, capture_output=True,
                                  stdin=subprocess.DEVNULL, text=True, timeout=RUN_SECONDS, check=False)
            assert said.returncode == 0 and "the mock model" in said.stdout, said.stdout + said.stderr
        finally:
            stop(mock)
