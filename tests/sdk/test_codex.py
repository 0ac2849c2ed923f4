"""Codex CLI as client: an answer, and a command that it runs; each leaves its trace in the usage log."""

import json

import pytest
from conftest import Client, mock

FORMAT = "responses"
CONFIG = """model_provider = "gateway"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.gateway]
name = "gateway"
base_url = "{base}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
"""


@pytest.fixture
def codex(stage, tmp_path):
    client = Client("codex", tmp_path)
    client.configure(".codex/config.toml", CONFIG.format(base=stage.proxy))

    def ask(model, prompt, *arguments):
        printed = client.run("exec", "--json", "--skip-git-repo-check", "-m", model, *arguments, prompt,
                             GATEWAY_KEY=stage.key)
        return [json.loads(line) for line in printed.splitlines()]

    ask.work = client.work
    return ask


def items(events, kind):
    return [e["item"] for e in events if e["type"] == "item.completed" and e["item"]["type"] == kind]


def test_answer(codex, stage, model):
    usage = {"input": 1234, "output": 56, "cache_read": 100}
    events = codex(model, f"Greet me. {mock(text='Hello from behind the gateway', usage=usage)}")
    assert [item["text"] for item in items(events, "agent_message")] == ["Hello from behind the gateway"]
    assert events[-1]["type"] == "turn.completed"
    counted = events[-1]["usage"]
    assert (counted["input_tokens"], counted["cached_input_tokens"], counted["output_tokens"]) == (1334, 100, 56)
    if stage.admin:
        entry = stage.logged(session=events[0]["thread_id"])[0]
        assert (entry["model"], entry["statusCode"]) == (model, 200)
        assert (entry["inputTokens"], entry["outputTokens"]) == (1234, 56)


def test_runs_a_command(codex, stage, model):
    wish = json.dumps({"cmd": "echo made > made.txt && echo done-$((40+2))"})
    events = codex(model, f"use tool exec_command {wish}", "--dangerously-bypass-approvals-and-sandbox")
    assert [item["exit_code"] for item in items(events, "command_execution")] == [0]
    assert "done-42" in items(events, "agent_message")[-1]["text"]
    assert (codex.work / "made.txt").read_text() == "made\n"
    if stage.admin:
        entries = stage.logged(session=events[0]["thread_id"], count=2)
        assert {entry["statusCode"] for entry in entries} == {200}
