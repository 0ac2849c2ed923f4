"""Errors from which Claude Code and Codex recover by their words: over their own format and over a converted one.

The provider answers with the error body of its real service.
"""

import json

import pytest
from conftest import mock
from launch import QUIET_CLAUDE, Program, codex_program
from received import PNG

FORMAT = "native"
SUMMARY = {"text": "<analysis>It was short.</analysis><summary>The user said hello.</summary>"}


def native(message):
    return {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": message}}}


def openai(message, **more):
    return {"status": 400, "body": {"error": {"message": message, "type": "invalid_request_error", "param": None} | more}}


LONG = {
    "via-native": native("prompt is too long: 250000 tokens > 200000 maximum"),
    "via-responses": openai("Your input exceeds the context window of this model. Please adjust your input and try again.",
                            code="context_length_exceeded", param="input"),
    "via-chat-compatible": openai("This model's maximum context length is 200000 tokens. However, your messages resulted in "
                                  "250000 tokens. Please reduce the length of the messages.", code="context_length_exceeded"),
}
# Input and reply together: the client asks for a shorter reply.
REPLY = {
    "via-native": native("input length and `max_tokens` exceed context limit: 180000 + 128000 > 200000, decrease input "
                         "length or `max_tokens` and try again"),
    "via-chat-compatible": openai("This model's maximum context length is 200000 tokens. However, you requested 308000 tokens "
                                  "(180000 in the messages, 128000 in the completion).", code="context_length_exceeded"),
}
IMAGE = {
    "via-native": native("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6123456 bytes > 5242880 bytes"),
    "via-responses": openai("The image data you provided does not represent a valid image.", code="invalid_value"),
}


@pytest.fixture
def claude(services, account, tmp_path):
    if services.direct:
        pytest.skip("only a gateway converts")
    environment = {"ANTHROPIC_BASE_URL": services.proxy, "ANTHROPIC_AUTH_TOKEN": account.key}
    return Program("claude", tmp_path, environment | QUIET_CLAUDE)


def ask(claude, model, *arguments, text="Say hello."):
    return json.loads(claude.run("-p", text, "--model", model, "--output-format", "json", *arguments))


@pytest.mark.parametrize("route", LONG)
def test_claude_code_compacts_a_conversation_that_is_too_long(claude, services, route):
    ask(claude, route)
    services.script(route, LONG[route], SUMMARY)
    result = ask(claude, route, "--continue")
    assert not result["is_error"] and "the mock model" in result["result"]
    assert [one["status"] for one in services.received(3)] == [400, 200, 200]
    assert "The user said hello." in json.dumps(services.received(1)[0]["body"])


@pytest.mark.parametrize("route", REPLY)
def test_claude_code_asks_for_a_shorter_reply(claude, services, route):
    services.script(route, REPLY[route])
    assert not ask(claude, route)["is_error"]
    most = [one["body"].get("max_tokens") or one["body"]["max_completion_tokens"] for one in services.received(2)]
    # The client leaves 1000 tokens of what is left.
    assert most[1] == 19_000 < most[0]


@pytest.mark.parametrize("route", IMAGE)
def test_claude_code_takes_an_image_out(claude, services, route):
    (claude.work / "image.png").write_bytes(PNG)
    services.script(route, {}, IMAGE[route])
    wish = f"use tool Read {json.dumps({'file_path': str(claude.work / 'image.png')})}"
    result = ask(claude, route, "--allowedTools", "Read", text=wish)
    assert not result["is_error"] and "Image removed: the API could not process this image" in result["result"]
    assert [one["status"] for one in services.received(3)] == [200, 400, 200]
    assert services.images(route) == []


@pytest.mark.parametrize("route, error, told", [
    *((route, error, "Codex ran out of room in the model's context window.") for route, error in LONG.items()),
    *((route, error, "Invalid image in your last message.") for route, error in IMAGE.items()),
])
def test_codex_ends_with_its_own_message(services, account, tmp_path, route, error, told):
    codex = codex_program(tmp_path, services.proxy, account.key)
    fixed = ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--model", route)
    assert told in codex.refused(*fixed, "--", f"Greet me. {mock(**error)}")
