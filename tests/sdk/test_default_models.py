"""The default models of the command-line clients: the shipped price table has a price for each of them.

Each client runs without a configured model. The usage log shows the requested models and their costs.
"""

import json
import os
import shutil
import time

import pytest
from account import LOG_SECONDS
from launch import ROOT, Program

INSTALLED = os.pathsep.join([str(ROOT / ".tools/node/node_modules/.bin"), os.environ["PATH"]])

FORMAT = "native"
GROUP = "default-models"
CLAUDE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
# Its built-in list of models, without a download.
OPENCODE = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_SHARE": "1"}
# As on the Connect page.
GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
CODEX = """
model_provider = "tollgate"
check_for_update_on_startup = false

[features]
apps = false
plugins = false

[analytics]
enabled = false

[model_providers.tollgate]
name = "tollgate"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "TOLLGATE_KEY"
"""


@pytest.fixture
def key(services):
    """A key for providers of every format, each of which serves every model."""
    if services.admin is None:
        pytest.skip("the usage log is out of reach")
    made = []
    for kind in ("native", "responses", "alt-cli"):
        provider = {"name": f"{GROUP} {kind}", "url": services.mock, "key": f"any-{kind}", "provider_type": kind}
        made.append(services.action("providers/addProvider", provider | {"group_tag": GROUP})["id"])
    user = services.action("users/addUser", {"name": GROUP, "providerGroup": GROUP})
    yield user["defaultKey"]
    services.action("users/removeUser", {"userId": user["user"]["id"]})
    for provider in made:
        services.action("providers/removeProvider", {"providerId": provider})


def asked(services, key):
    """The key's models in the log, and whether all requests of each have a cost."""
    end = time.monotonic() + LOG_SECONDS
    logs, before = [], None
    # Records arrive late: read until there is one and the number no longer grows.
    while time.monotonic() < end and (not logs or len(logs) != before):
        before = len(logs)
        time.sleep(0.5)
        logs = services.action("usage-logs/getUsageLogs", {"keyId": key["id"], "pageSize": 100})["logs"]
    done = [entry for entry in logs if entry["statusCode"] == 200 and entry["outputTokens"] > 0]
    assert done, logs
    return {entry["model"]: entry["costUsd"] is not None for entry in done}


def check(services, key):
    models = asked(services, key)
    unpriced = sorted(model for model, priced in models.items() if not priced)
    assert not unpriced, f"conf/prices.json has no price for {unpriced}; asked for were {sorted(models)}"


@pytest.mark.parametrize("alias", [None, "opus", "sonnet", "haiku"])
def test_claude_code(services, key, tmp_path, alias):
    environment = CLAUDE | {"ANTHROPIC_BASE_URL": services.proxy, "ANTHROPIC_AUTH_TOKEN": key["key"]}
    claude = Program("claude", tmp_path, environment)
    claude.run("-p", "Say hello.", "--output-format", "json", *(["--model", alias] if alias else []))
    check(services, key)


def test_codex(services, key, tmp_path):
    codex = Program("codex", tmp_path, {"TOLLGATE_KEY": key["key"]})
    home = codex.home / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(CODEX.format(base=services.proxy))
    codex.run("exec", "--skip-git-repo-check", "--json", "Say hello.")
    check(services, key)


def test_gemini_cli(services, key, tmp_path):
    environment = {
        "GEMINI_API_KEY": key["key"],
        "GOOGLE_GEMINI_BASE_URL": services.proxy,
        "GEMINI_CLI_NO_RELAUNCH": "1",
    }
    gemini = Program("gemini", tmp_path, environment)
    folder = gemini.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(GEMINI))
    gemini.run("--output-format", "json", "--approval-mode", "yolo", "--skip-trust", "--prompt", "Say hello.")
    check(services, key)


@pytest.mark.skipif(shutil.which("opencode", path=INSTALLED) is None, reason="opencode is not among the pinned clients")
def test_opencode(services, key, tmp_path):
    opencode = Program("opencode", tmp_path, {"TOLLGATE_KEY": key["key"]} | OPENCODE)
    config = {"provider": {"anthropic": {"options": {"baseURL": f"{services.proxy}/v1", "apiKey": "{env:TOLLGATE_KEY}"}}}}
    (opencode.work / "opencode.json").write_text(json.dumps(config))
    opencode.run("run", "Say hello.")
    check(services, key)
