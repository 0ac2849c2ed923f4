"""Claude Code as client: an answer, and a tool that it runs; each leaves its trace in the usage log."""

import json
from decimal import Decimal

import pytest
from conftest import Client, cost, mock

FORMAT = "native"


@pytest.fixture
def claude(stage, tmp_path):
    client = Client("claude", tmp_path)

    def ask(model, prompt, *arguments):
        printed = client.run(
            "-p", prompt, "--model", model, "--output-format", "json", *arguments,
            ANTHROPIC_BASE_URL=stage.proxy,
            ANTHROPIC_AUTH_TOKEN=stage.key,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            CLAUDE_CODE_MAX_RETRIES="1",
            DISABLE_AUTOUPDATER="1",
            DISABLE_ERROR_REPORTING="1",
            DISABLE_TELEMETRY="1",
        )
        return json.loads(printed)

    ask.work = client.work
    return ask


def test_answer(claude, stage, model):
    usage = {"input": 1234, "output": 56, "cache_read": 100}
    result = claude(model, f"Greet me. {mock(text='Hello from behind the gateway', usage=usage)}")
    assert result["result"] == "Hello from behind the gateway" and not result["is_error"]
    if stage.admin:
        entry = stage.logged(session=result["session_id"])[0]
        assert (entry["model"], entry["statusCode"]) == (model, 200)
        assert (entry["inputTokens"], entry["outputTokens"]) == (1234, 56)
        assert Decimal(str(entry["costUsd"])) == cost(entry) == Decimal("0.004572")


def test_runs_a_tool(claude, stage, model):
    wish = json.dumps({"command": "echo made > made.txt && echo done-$((40+2))", "description": "make a file"})
    result = claude(model, f"use tool Bash {wish}", "--allowedTools", "Bash")
    assert not result["is_error"] and result["num_turns"] == 2
    assert "done-42" in result["result"]
    assert (claude.work / "made.txt").read_text() == "made\n"
    if stage.admin:
        entries = stage.logged(session=result["session_id"], count=2)
        assert {entry["statusCode"] for entry in entries} == {200}
        assert all(Decimal(str(entry["costUsd"])) == cost(entry) > 0 for entry in entries)
