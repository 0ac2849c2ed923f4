"""Gemini CLI as client: an answer, and a tool that it runs; each leaves its trace in the usage log."""

import json

import pytest
from conftest import Client, mock

FORMAT = "alt-cli"
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


@pytest.fixture
def gemini(stage, tmp_path):
    client = Client("gemini", tmp_path)
    client.configure(".gemini/settings.json", json.dumps(SETTINGS))

    def ask(model, prompt, *arguments):
        printed = client.run("-m", model, "--output-format", "json", *arguments, "-p", prompt,
                             GEMINI_API_KEY=stage.key, GOOGLE_GEMINI_BASE_URL=stage.proxy,
                             GEMINI_CLI_TRUST_WORKSPACE="true")
        return json.loads(printed[printed.index("{"):])

    ask.work = client.work
    return ask


def test_answer(gemini, stage, model):
    # The program names no session to the gateway: its entry is found by its model and figures.
    usage = {"input": 1234, "output": 57, "cache_read": 100}
    result = gemini(model, f"Greet me. {mock(text='Hello from behind the gateway', usage=usage)}")
    assert result["response"] == "Hello from behind the gateway"
    tokens = result["stats"]["models"][model]["tokens"]
    assert (tokens["prompt"], tokens["cached"], tokens["candidates"]) == (1334, 100, 57)
    if stage.admin:
        entry = stage.logged(model=model, outputTokens=57)[0]
        assert (entry["inputTokens"], entry["statusCode"]) == (1234, 200)


def test_runs_a_tool(gemini, model):
    wish = json.dumps({"command": "echo made > made.txt && rev made.txt", "description": "make a file"})
    result = gemini(model, f"use tool run_shell_command {wish}", "--approval-mode", "yolo")
    assert "edam" in result["response"]
    assert result["stats"]["tools"]["byName"]["run_shell_command"]["success"] == 1
    assert (gemini.work / "made.txt").read_text() == "made\n"
