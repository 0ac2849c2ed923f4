"""Codex CLI as client: an answer, a stream, a tool that it runs, images; each has its entries in the usage log."""

import json

import pytest
from conftest import call as requested
from conftest import mock
from launch import COMMAND, PRINTED, Program
from received import PNG

FORMAT = "responses"
TEXT = "naïve 東京 🚀 answer from far away"
# Without this, each start downloads plugins and apps.
QUIET = """
check_for_update_on_startup = false

[features]
apps = false
plugins = false

[analytics]
enabled = false
"""
OWN_PROVIDER = """
model_provider = "gateway"
{quiet}
[model_providers.gateway]
name = "gateway"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "GATEWAY_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
BUILT_IN_PROVIDER = """
openai_base_url = "{base}/v1"
{quiet}
"""


def installed(services, folder, config, environment):
    codex = Program("codex", folder, environment)
    home = codex.home / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(config.format(base=services.proxy, quiet=QUIET))
    return codex


@pytest.fixture
def codex(services, account, tmp_path):
    return installed(services, tmp_path, OWN_PROVIDER, {"GATEWAY_KEY": account.key})


class Result:
    """The output of one run: its thread, texts, executed commands and counted tokens."""

    def __init__(self, events):
        items = [event["item"] for event in events if event["type"] == "item.completed"]
        self.thread = next(event["thread_id"] for event in events if event["type"] == "thread.started")
        self.texts = [item["text"] for item in items if item["type"] == "agent_message"]
        self.commands = [item for item in items if item["type"] == "command_execution"]
        usage = next(event["usage"] for event in events if event["type"] == "turn.completed")
        cached = usage["cached_input_tokens"]
        self.used = {"inputTokens": usage["input_tokens"] - cached, "outputTokens": usage["output_tokens"],
                     "cacheReadTokens": cached}


def ask(codex, model, prompt, *arguments):
    # The sandbox needs rights that a container may lack. The only command here is part of the test.
    fixed = ("exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--model", model)
    return Result(codex.events(*fixed, *arguments, "--", prompt))


def test_answer(codex, account, model):
    usage = {"input": 1234, "output": 56, "cache_read": 100}
    result = ask(codex, model, f"Greet me. {mock(text='Hello from behind the gateway', usage=usage)}")
    assert result.texts == ["Hello from behind the gateway"]
    assert result.used == {"inputTokens": 1234, "outputTokens": 56, "cacheReadTokens": 100}
    assert account.check(model, streamed=True, **result.used) in (result.thread, None)


def test_stream(codex, account, model):
    wanted = mock(thinking="let me see", text=TEXT, events=9, chunking="split", pings=2)
    result = ask(codex, model, f"Greet me. {wanted}")
    assert result.texts == [TEXT]
    account.check(model, streamed=True, **result.used)


def test_runs_a_tool(codex, account, model):
    call = {"name": "exec_command", "arguments": {"cmd": COMMAND}}
    result = ask(codex, model, f"Do it. {mock(thinking='a tool will do', tools=[call])}")
    assert [item["exit_code"] for item in result.commands] == [0]
    assert PRINTED in result.texts[-1]
    assert codex.made() == "made\n"
    assert account.check(model, count=2, streamed=True, **result.used) in (result.thread, None)


def test_image(codex, account, services, model):
    (codex.work / "image.png").write_bytes(PNG)
    result = ask(codex, model, f"What is it? {mock(text='A picture.')}", "--image", "image.png")
    assert result.texts == ["A picture."]
    assert services.images(model) == [("image/png", PNG)]
    account.check(model, streamed=True, **result.used)


def test_image_from_a_tool(codex, account, services, model):
    (codex.work / "image.png").write_bytes(PNG)
    ask(codex, model, f"use tool view_image {json.dumps({'path': 'image.png'})}")
    assert services.images(model) == [("image/png", PNG)]
    account.check(model, count=2, streamed=True)


def over_websocket(account, count):
    """The requests came over a WebSocket, as the log says."""
    if account.key_id is not None:
        assert {entry["endpoint"] for entry in account.log(count)} == {"/v1/responses#websocket"}


@pytest.fixture
def on_websocket(services, account, tmp_path):
    config = OWN_PROVIDER + "supports_websockets = true\n"
    return installed(services, tmp_path, config, {"GATEWAY_KEY": account.key})


def test_websocket(on_websocket, account, model):
    wanted = mock(thinking="let me see", text=TEXT, events=9, chunking="split", pings=2)
    result = ask(on_websocket, model, f"Greet me. {wanted}")
    assert result.texts == [TEXT]
    assert account.check(model, streamed=True, **result.used) in (result.thread, None)
    over_websocket(account, 1)


def test_websocket_with_a_tool(on_websocket, account, services, model):
    # The second request has only the tool's result: the gateway adds what came before.
    call = {"name": "exec_command", "arguments": {"cmd": COMMAND}}
    result = ask(on_websocket, model, f"Do it. {mock(thinking='a tool will do', tools=[call])}")
    assert [item["exit_code"] for item in result.commands] == [0]
    assert PRINTED in result.texts[-1]
    assert on_websocket.made() == "made\n"
    assert account.check(model, count=2, streamed=True, **result.used) in (result.thread, None)
    over_websocket(account, 2)


def test_provider_over_a_websocket(on_websocket, account, services):
    if services.admin is None:
        pytest.skip("no provider can be added")
    key, model = "upstream-sockets", "over-sockets"
    requested(f"{services.mock}/mock/default?key={key}", {"websocket": True})
    services.action("providers/addProvider", {"name": "sockets", "url": services.mock, "key": key, "websocket": True,
                                              "provider_type": "responses", "allowed_models": [model]})
    call = {"name": "exec_command", "arguments": {"cmd": COMMAND}}
    result = ask(on_websocket, model, f"Do it. {mock(thinking='a tool will do', tools=[call])}")
    assert [item["exit_code"] for item in result.commands] == [0]
    assert PRINTED in result.texts[-1]
    over_websocket(account, 2)
    first, second = (request["headers"].get("x-mock-socket") for request in services.received(2))
    assert first is not None and first == second


def test_built_in_provider(services, account, tmp_path, model):
    # It tries a websocket first.
    codex = installed(services, tmp_path, BUILT_IN_PROVIDER, {"CODEX_API_KEY": account.key})
    result = ask(codex, model, f"Greet me. {mock(text=TEXT)}")
    assert result.texts == [TEXT]
    assert account.check(model, streamed=True, **result.used) in (result.thread, None)
    over_websocket(account, 1)
