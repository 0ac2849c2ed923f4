"""opencode as client, in the native and the chat-compatible format: a turn in which it runs a tool."""

import json

import pytest
from launch import COMMAND, PRINTED, Program

FORMAT = "native"
OFF = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD",
       "OPENCODE_DISABLE_DEFAULT_PLUGINS")
# Which package speaks to which type of provider: each format over its own type and over two others.
ROUTES = [("@ai-sdk/anthropic", "via-native"), ("@ai-sdk/anthropic", "via-responses"),
          ("@ai-sdk/openai-compatible", "via-chat-compatible"), ("@ai-sdk/openai-compatible", "via-alt-cli")]


@pytest.mark.parametrize("package, route", ROUTES)
def test_runs_a_tool(services, account, tmp_path, package, route):
    if services.direct:
        pytest.skip("only a gateway has several providers")
    opencode = Program("opencode", tmp_path, {name: "1" for name in OFF})
    provider = {"npm": package, "name": "gateway", "options": {"baseURL": f"{services.proxy}/v1", "apiKey": account.key},
                "models": {route: {"name": route}}}
    settings = {"provider": {"gateway": provider}, "autoupdate": False, "share": "disabled"}
    (opencode.work / "opencode.json").write_text(json.dumps(settings))
    call = {"name": "bash", "arguments": {"command": COMMAND, "description": "make a file"}}
    # The program escapes the quotes of an argument with blanks.
    wish = "[[mock" + json.dumps({"tools": [call]}, separators=(",", ":")).replace(" ", "\\u0020") + "]]"
    said = opencode.run("run", "--model", f"gateway/{route}", wish)
    assert PRINTED in said
    assert opencode.made() == "made\n"
