"""Gemini CLI as client: an answer, a stream, a tool that it runs, images; each has its entries in the usage log."""

import json

import pytest
from conftest import mock
from launch import COMMAND, PRINTED, Program
from received import PNG

FORMAT = "alt-cli"
TEXT = "naïve 東京 🚀 answer from far away"
SETTINGS = {
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 1},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "telemetry": {"enabled": False},
}


@pytest.fixture
def gemini(services, account, tmp_path):
    environment = {
        "GEMINI_API_KEY": account.key,
        "GOOGLE_GEMINI_BASE_URL": services.proxy,
        # Without this it starts itself a second time, with more memory.
        "GEMINI_CLI_NO_RELAUNCH": "1",
    }
    gemini = Program("gemini", tmp_path, environment)
    folder = gemini.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    return gemini


class Result:
    """The output of one run: pieces of text, results of tools, and counted tokens."""

    def __init__(self, events):
        self.pieces = [event["content"] for event in events
                       if event["type"] == "message" and event["role"] == "assistant"]
        self.results = [event["status"] for event in events if event["type"] == "tool_result"]
        assert (events[-1]["type"], events[-1]["status"]) == ("result", "success"), events
        stats = events[-1]["stats"]
        self.used = {"inputTokens": stats["input"], "outputTokens": stats["output_tokens"],
                     "cacheReadTokens": stats["cached"]}

    @property
    def text(self):
        return "".join(self.pieces)


def ask(gemini, model, prompt):
    fixed = ("--model", model, "--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust")
    return Result(gemini.events(*fixed, "--prompt", prompt))


def test_answer(gemini, account, model):
    usage = {"input": 1234, "output": 56, "cache_read": 100}
    result = ask(gemini, model, f"Greet me. {mock(text='Hello from behind the gateway', usage=usage)}")
    assert result.text == "Hello from behind the gateway"
    assert result.used == {"inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 100}
    account.check(model, streamed=True, **result.used)


def test_stream(gemini, account, model):
    # It cannot parse the comments that serve as pings in an alt-cli stream; its own service sends none.
    pings = 0 if model == "via-alt-cli" else 2
    wanted = mock(thinking="let me see", text=TEXT, events=9, chunking="split", pings=pings)
    result = ask(gemini, model, f"Greet me. {wanted}")
    assert result.text == TEXT and len(result.pieces) > 1
    account.check(model, streamed=True)


def test_runs_a_tool(gemini, account, model):
    call = {"name": "run_shell_command", "arguments": {"command": COMMAND}}
    result = ask(gemini, model, f"Do it. {mock(thinking='a tool will do', tools=[call])}")
    assert result.results == ["success"]
    assert PRINTED in result.text
    assert gemini.made() == "made\n"
    account.check(model, count=2, streamed=True, inputTokens=result.used["inputTokens"])


def test_image(gemini, account, services, model):
    (gemini.work / "image.png").write_bytes(PNG)
    result = ask(gemini, model, f"What is @image.png ? {mock(text='A picture.')}")
    assert result.text == "A picture."
    assert services.images(model) == [("image/png", PNG)]
    account.check(model, streamed=True, **result.used)


def test_image_from_a_tool(gemini, account, services, model):
    (gemini.work / "image.png").write_bytes(PNG)
    result = ask(gemini, model, f"use tool read_file {json.dumps({'file_path': 'image.png'})}")
    assert result.results == ["success"]
    assert services.images(model) == [("image/png", PNG)]
    account.check(model, count=2, streamed=True)
