"""Claude Code in auto mode: its check of tool calls runs at the provider, headless and in a terminal."""

import contextlib
import json

import pytest
from conftest import TYPES, mock
from launch import COMMAND, PRINTED, QUIET_CLAUDE, Program

FORMAT = "native"
BETAS = ["dangerous-tool-use-2026-09-03", "afk-mode-2026-01-31"]
# A shell within the shell: the client runs a plain command of this kind without the check.
CALL = {"name": "Bash", "arguments": {"command": f"sh -c '{COMMAND}'", "description": "make a file"}}
CONVERTED = [f"via-{kind}" for kind in TYPES if kind != "native"]
# What the user reads where nothing answers for the check.
NO_CHECK = "doesn't pass it through"
# Why the model of the operator flags the call.
REASON = "It makes a file."
# The beginning of the notice in a terminal that there is no check.
NOTICE = "can't check actions in this session"


def installed(services, key, folder, **more):
    if services.direct:
        pytest.skip("only a gateway has several providers")
    environment = {"ANTHROPIC_BASE_URL": services.proxy, "ANTHROPIC_AUTH_TOKEN": key}
    return Program("claude", folder, environment | QUIET_CLAUDE | more)


@pytest.fixture
def claude(services, account, tmp_path):
    return installed(services, account.key, tmp_path)


def prompt(**more):
    return f"Do it. {mock(text='I will run it.', tools=[CALL], **more)}"


def run(claude, model, **more):
    """The events of a headless run that ends, whatever was allowed."""
    arguments = ("--permission-mode", "auto", "--output-format", "stream-json", "--verbose")
    return claude.events("-p", prompt(**more), "--model", model, *arguments)


def of_kind(events, subtype):
    return [event for event in events if event["type"] == "system" and event["subtype"] == subtype]


def test_a_call_that_is_not_flagged_runs(claude, account, services):
    events = run(claude, "via-native")
    assert claude.made() == "made\n" and PRINTED in events[-1]["result"]
    assert events[-1]["permission_denials"] == [] and not of_kind(events, "informational")
    # The provider gets field and betas as the client sent them, in each request.
    for one in services.received(2):
        [safeguard] = one["body"]["safeguards"]
        assert (safeguard["type"], safeguard["classifier_context"]["permission_mode"]) == ("dangerous_tool_use", "auto")
        assert [beta for beta in one["headers"]["anthropic-beta"].split(",") if beta in BETAS] == BETAS
    account.check("via-native", count=2, streamed=True)


def test_a_call_that_is_flagged_does_not_run(claude, services):
    events = run(claude, "via-native", safeguards="flagged")
    assert not (claude.work / "made.txt").exists()
    [denied] = of_kind(events, "permission_denied")
    assert denied["decision_reason"] == "The mock was asked to flag this call."
    [safeguard] = services.received(1)[0]["body"]["safeguards"]
    assert len(safeguard["classifier_context"]["refused_calls"]) == 1


def test_a_check_without_an_answer_is_no_fault_of_the_gateway(claude):
    events = run(claude, "via-native", safeguards="unavailable")
    assert not (claude.work / "made.txt").exists()
    assert of_kind(events, "permission_denied") and not of_kind(events, "informational")


@pytest.mark.parametrize("route", ["via-native", *CONVERTED])
def test_without_a_check_the_client_says_so_and_runs_nothing(claude, services, route):
    # On a native route only if the provider says so.
    events = run(claude, route, safeguards="unsupported")
    assert not (claude.work / "made.txt").exists()
    [told] = of_kind(events, "informational")
    host = services.proxy.removeprefix("http://")
    assert f"your requests go through {host}, which {NO_CHECK}" in told["content"]


def test_without_a_check_a_plain_run_ends_with_an_error(claude):
    printed = claude.refused("-p", prompt(), "--model", "via-responses", "--permission-mode", "auto")
    assert NO_CHECK in printed and "auto mode could not check some actions Claude tried" in printed


def test_the_clients_own_check_is_a_request_for_another_model(services, tmp_path):
    if services.admin is None:
        pytest.skip("no administration")
    group, key = "auto-mode", "any-auto-mode"
    provider = {"name": group, "url": services.mock, "key": key, "provider_type": "native", "group_tag": group}
    made = services.action("providers/addProvider", provider)["id"]
    user = services.action("users/addUser", {"name": group, "providerGroup": group})
    try:
        claude = installed(services, user["defaultKey"]["key"], tmp_path, CLAUDE_CODE_AUTO_MODE_SERVER="0")
        services.script(None, {"tools": [CALL]}, {"text": "<severity>5</severity>"}, {"text": "Done."}, key=key)
        arguments = ("--permission-mode", "auto", "--output-format", "stream-json", "--verbose")
        claude.events("-p", "Do it.", "--model", "claude-opus-5-5", *arguments)
        assert claude.made() == "made\n"
        check = services.received(3)[1]["body"]
        assert (check["model"], check.get("stream"), check.get("tools")) == ("claude-sonnet-5", None, None)
        assert check["system"][1]["text"].startswith("You are a security monitor for autonomous AI coding agents.")
    finally:
        services.action("users/removeUser", {"userId": user["user"]["id"]})
        services.action("providers/removeProvider", {"providerId": made})


@contextlib.contextmanager
def judged(services, folder, route, dangerous):
    """Claude Code with a model of the operator that judges the call which the provider behind `route` makes."""
    if services.admin is None:
        pytest.skip("no administration")
    name = folder.name
    provider = {"name": name, "url": services.mock, "key": name, "provider_type": "native", "group_tag": name}
    made = services.action("providers/addProvider", provider | {"allowed_models": ["tool-judge"]})["id"]
    user = services.action("users/addUser", {"name": name, "providerGroup": f"default,{name}"})
    try:
        verdict = {"calls": [{"n": 1, "dangerous": dangerous, "reason": REASON if dangerous else ""}]}
        services.script(None, {"text": json.dumps(verdict)}, key=name)
        services.script(route, {"text": "I will run it.", "tools": [CALL]}, {"text": "That is all."})
        yield installed(services, user["defaultKey"]["key"], folder)
        for one in services.received(3):
            assert "safeguards" not in one["body"] and "home_dir" not in json.dumps(one)
    finally:
        services.action("users/removeUser", {"userId": user["user"]["id"]})
        services.action("providers/removeProvider", {"providerId": made})


@pytest.mark.parametrize("route", CONVERTED)
@pytest.mark.parametrize("dangerous", [False, True])
def test_a_model_of_the_operator_judges_for_other_providers(services, tmp_path, route, dangerous):
    with judged(services, tmp_path, route, dangerous) as claude:
        arguments = ("--permission-mode", "auto", "--output-format", "stream-json", "--verbose")
        events = claude.events("-p", "Do it.", "--model", route, *arguments)
        assert not of_kind(events, "informational")
        if dangerous:
            assert not (claude.work / "made.txt").exists()
            [denied] = of_kind(events, "permission_denied")
            assert denied["decision_reason"] == REASON
        else:
            assert claude.made() == "made\n"


def test_a_provider_that_refuses_the_field_is_asked_again_without_it(claude, services):
    refusal = {"type": "error", "error": {"type": "invalid_request_error",
                                          "message": "safeguards: Extra inputs are not permitted"}}
    services.script("via-native", {"status": 400, "body": refusal})
    run(claude, "via-native")
    sent = services.received(3)
    assert ["safeguards" in one["body"] for one in sent] == [True, False, False]
    assert [BETAS[0] in one["headers"]["anthropic-beta"] for one in sent] == [True, False, False]


def in_terminal(claude, model, text, *ends):
    """The screen, once it shows one of the ends."""
    projects = {str(claude.work): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    settings = {"hasCompletedOnboarding": True, "theme": "dark", "projects": projects}
    (claude.home / ".claude.json").write_text(json.dumps(settings))
    with claude.terminal("--permission-mode", "auto", "--model", model) as terminal:
        terminal.screen("auto mode on")
        terminal.type(text)
        return terminal.screen(NOTICE, *ends)


def test_in_a_terminal_a_checked_call_runs_without_a_question(claude):
    shown = in_terminal(claude, "via-native", prompt(), "The tool said")
    assert PRINTED in shown and NOTICE not in shown
    assert claude.made() == "made\n"


def test_in_a_terminal_the_user_is_told_that_there_is_no_check(claude, services):
    shown = in_terminal(claude, "via-chat-compatible", prompt())
    assert f"go through {services.proxy.removeprefix('http://')}, and the check isn't getting through" in shown
    assert not (claude.work / "made.txt").exists()


@pytest.mark.parametrize("dangerous", [False, True])
def test_in_a_terminal_the_user_sees_what_a_model_of_the_operator_judged(services, tmp_path, dangerous):
    route = "via-chat-compatible"
    with judged(services, tmp_path, route, dangerous) as claude:
        shown = in_terminal(claude, route, "Do it.", "That is all.")
        assert NOTICE not in shown
        if dangerous:
            assert "Did not run 1 call" in shown and f"Auto mode: {REASON}" in shown
            assert not (claude.work / "made.txt").exists()
        else:
            assert "Ran 1 shell command" in shown and "Did not run" not in shown
            assert claude.made() == "made\n"
