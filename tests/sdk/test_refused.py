"""Refusals by the gateway: each command-line client and SDK ends soon and shows the gateway's message."""

import json
import time

import anthropic
import openai
import pytest
from conftest import call, mock
from google import genai
from google.genai import errors
from launch import QUIET_CLAUDE, Program, codex_program
from relay import Relay

# From a program's first request to its end. On a busy machine it may take as long as the start.
SECONDS = 10
# A limit that one reply of a thousand tokens exceeds.
CENT = 0.01


def claude(folder, base, key):
    environment = {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_AUTH_TOKEN": key} | QUIET_CLAUDE
    return Program("claude", folder, environment), ("-p", "Greet me.", "--model", "via-native")


def codex(folder, base, key):
    # With the default number of retries, as users have it.
    program = codex_program(folder, base, key)
    fixed = ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--model", "via-responses")
    return program, (*fixed, "--", "Greet me.")


def gemini(folder, base, key):
    environment = {"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": base, "GEMINI_CLI_NO_RELAUNCH": "1"}
    program = Program("gemini", folder, environment)
    (program.home / ".gemini").mkdir()
    (program.home / ".gemini/settings.json").write_text(json.dumps({
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": False},
    }))
    return program, ("--model", "via-alt-cli", "--approval-mode", "yolo", "--skip-trust", "--prompt", "Greet me.")


def opencode(folder, base, key, package, model):
    off = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD",
           "OPENCODE_DISABLE_DEFAULT_PLUGINS")
    program = Program("opencode", folder, {name: "1" for name in off})
    provider = {"npm": package, "name": "gateway", "options": {"baseURL": f"{base}/v1", "apiKey": key},
                "models": {model: {"name": model}}}
    settings = {"provider": {"gateway": provider}, "autoupdate": False, "share": "disabled"}
    (program.work / "opencode.json").write_text(json.dumps(settings))
    return program, ("run", "--model", f"gateway/{model}", "Greet me.")


def opencode_native(folder, base, key):
    return opencode(folder, base, key, "@ai-sdk/anthropic", "via-native")


def opencode_chat(folder, base, key):
    return opencode(folder, base, key, "@ai-sdk/openai-compatible", "via-chat-compatible")


PROGRAMS = [claude, codex, gemini, opencode_native, opencode_chat]


def spent(services, limit):
    """A key of a separate user whose limit of one cent is used up."""
    made = services.action("users/addUser", {"name": f"spent-{time.time_ns()}"})["defaultKey"]
    services.action("keys/editKey", {"keyId": made["id"], limit: CENT})
    body = {"model": "via-native", "max_tokens": 1000,
            "messages": [{"role": "user", "content": f"hello {mock(usage={'input': 10, 'output': 1000})}"}]}
    assert call(f"{services.proxy}/v1/messages", body, {"x-api-key": made["key"]})[0] == 200
    return made["key"]


def refused(services, folder, program, key):
    """The output of a refused program, which must end in time."""
    if services.direct or not services.admin:
        pytest.skip("only a gateway refuses")
    with Relay(services.proxy) as relay:
        client, arguments = program(folder, relay.url, key)
        began = time.monotonic()
        printed = client.refused(*arguments)
        took = relay.since_first()
    assert took is not None, f"it asked for nothing:\n{printed}"
    start = time.monotonic() - took - began
    assert took < max(SECONDS, start), f"{took} s after a start of {start} s:\n{printed}"
    return " ".join(printed.split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_daily_budget_that_is_used_up_ends_the_run_with_a_message(services, tmp_path, program):
    printed = refused(services, tmp_path, program, spent(services, "limitDailyUsd"))
    assert "The daily limit of this key ($0.01) is used up. It resets at 00:00 (UTC)" in printed, printed


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_total_budget_that_is_used_up_ends_the_run_with_a_message(services, tmp_path, program):
    printed = refused(services, tmp_path, program, spent(services, "limitTotalUsd"))
    wanted = "The total limit of this key ($0.01) is used up. It does not reset. Ask an administrator to raise it"
    assert wanted in printed, printed


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_key_ends_the_run_with_a_message(services, tmp_path, program):
    printed = refused(services, tmp_path, program, services.bad_key)
    assert "the API key is not known" in printed, printed


def test_the_sdks_raise_their_error_for_a_used_up_budget_at_once(services):
    if services.direct or not services.admin:
        pytest.skip("only a gateway refuses")
    key, message = spent(services, "limitDailyUsd"), "The daily limit of this key ($0.01) is used up."
    asked = {"model": "via-native", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    speaker = openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=key)
    google = genai.Client(api_key=key, http_options={"base_url": services.proxy})
    claude_sdk = anthropic.Anthropic(base_url=services.proxy, api_key=key)
    before = refusals(services)
    began = time.monotonic()
    with pytest.raises(anthropic.RateLimitError, match="daily limit"):
        claude_sdk.messages.create(**asked)
    for ask in (lambda: speaker.responses.create(model="via-responses", input="hello"),
                lambda: speaker.chat.completions.create(model="via-chat-compatible", messages=asked["messages"])):
        with pytest.raises(openai.RateLimitError) as caught:
            ask()
        assert caught.value.code == "insufficient_quota" and message in str(caught.value)
        assert caught.value.body["limit_type"] == "key_daily"
    with pytest.raises(errors.ClientError) as caught:
        google.models.generate_content(model="via-alt-cli", contents="hello")
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED") and message in str(caught.value)
    assert time.monotonic() - began < SECONDS
    # One request each, without a retry. Records reach the log a little later.
    end = time.monotonic() + 20
    while len(new := refusals(services) - before) < 4 and time.monotonic() < end:
        time.sleep(0.1)
    assert len(new) == 4


def refusals(services):
    entries = services.action("usage-logs/getUsageLogs", {"statusCode": 429, "pageSize": 100})["logs"]
    return {entry["requestId"] for entry in entries}
