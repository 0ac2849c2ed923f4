"""Claude Code as client: an answer, a stream, a tool that it runs, an image; each has its entries in the usage log."""

import json

import pytest
from conftest import mock
from launch import COMMAND, PRINTED, Program
from received import PNG

FORMAT = "native"
TEXT = "naïve 東京 🚀 answer from far away"


@pytest.fixture
def claude(services, account, tmp_path):
    environment = {
        "ANTHROPIC_BASE_URL": services.proxy,
        "ANTHROPIC_AUTH_TOKEN": account.key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
    return Program("claude", tmp_path, environment)


def ask(claude, model, prompt, *arguments):
    """The decoded result of one prompt."""
    result = json.loads(claude.run("-p", prompt, "--model", model, "--output-format", "json", *arguments))
    assert not result["is_error"], result
    return result


def used(result):
    """The tokens that the program counted, in the fields of the usage log."""
    usage = result["modelUsage"].values()
    return {name: sum(one[name] for one in usage) for name in ("inputTokens", "outputTokens")}


def test_answer(claude, account, model):
    usage = {"input": 1234, "output": 56, "cache_read": 100}
    result = ask(claude, model, f"Greet me. {mock(text='Hello from behind the gateway', usage=usage)}")
    assert result["result"] == "Hello from behind the gateway"
    wanted = {"inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 100}
    assert account.check(model, streamed=True, **wanted) in (result["session_id"], None)
    assert (used(result) | wanted) == wanted


def test_stream(claude, account, model):
    wanted = mock(thinking="let me see", text=TEXT, events=9, chunking="split", pings=2)
    more = ("--output-format", "stream-json", "--verbose", "--include-partial-messages")
    events = claude.events("-p", f"Greet me. {wanted}", "--model", model, *more)
    deltas = [event["event"]["delta"] for event in events
              if event["type"] == "stream_event" and event["event"]["type"] == "content_block_delta"]
    pieces = [delta["text"] for delta in deltas if delta["type"] == "text_delta"]
    assert "".join(pieces) == events[-1]["result"] == TEXT and len(pieces) > 1
    account.check(model, streamed=True, **used(events[-1]))


def test_runs_a_tool(claude, account, model):
    call = {"name": "Bash", "arguments": {"command": COMMAND, "description": "make a file"}}
    result = ask(claude, model, f"Do it. {mock(thinking='a tool will do', tools=[call])}", "--allowedTools", "Bash")
    assert result["num_turns"] == 2
    assert PRINTED in result["result"]
    assert claude.made() == "made\n"
    session = account.check(model, count=2, streamed=True, **used(result))
    assert session in (result["session_id"], None)


def test_image(claude, account, services, model):
    image = claude.work / "image.png"
    image.write_bytes(PNG)
    wish = json.dumps({"file_path": str(image)})
    result = ask(claude, model, f"use tool Read {wish}", "--allowedTools", "Read")
    assert result["num_turns"] == 2
    assert services.images(model) == [("image/png", PNG)]
    account.check(model, count=2, streamed=True)
