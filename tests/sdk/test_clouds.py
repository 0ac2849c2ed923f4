"""The vendors' own libraries as judges: what the gateway sends to a cloud equals what they send.

Each library sends one request to the mock itself and one through the gateway, whose provider has the cloud's address.
Both requests must have the same path, query, credential, version and body.
"""

import contextlib
import json
import pathlib
import urllib.parse

import anthropic
import azure.identity
import google.auth.jwt
import google.auth.transport.requests
import openai
import pytest
from azure.core.pipeline.transport import HttpTransport
from cryptography.hazmat.primitives import serialization
from google.oauth2 import service_account

GPT, CLAUDE = "gpt-5.6", "claude-sonnet-4-6"
ASK = {"messages": [{"role": "user", "content": "Say hello."}]}
HEADERS = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "anthropic-version")
PEM = (pathlib.Path(__file__).parents[1] / "proxy/clouds/key.pem").read_text()


@contextlib.contextmanager
def key_for(services, name, **provider):
    """A key whose only provider is this one."""
    if services.direct or services.admin is None:
        pytest.skip("no administration")
    made = services.action("providers/addProvider", {"name": name, "group_tag": name, "key": "the-key"} | provider)["id"]
    user = services.action("users/addUser", {"name": name, "providerGroup": name})
    try:
        yield user["defaultKey"]["key"]
    finally:
        services.action("providers/removeProvider", {"providerId": made})


def sent(services, ask, *arguments, **named):
    """The request that the mock received for a call."""
    ask(*arguments, **named)
    seen = services.received(1)[0]
    headers = {name: seen["headers"].get(name) for name in HEADERS}
    return {"path": seen["path"], "query": urllib.parse.parse_qs(seen["query"]), "body": seen["body"], "headers": headers}


def through(services, key):
    return openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=key, max_retries=0)


def of_sdk(services):
    return openai.AzureOpenAI(azure_endpoint=services.mock, api_key="the-key", api_version="2024-10-21", max_retries=0)


@pytest.mark.parametrize("call", ["chat", "embeddings"])
def test_azure_deployments(services, call):
    calls = {
        "chat": lambda client: client.chat.completions.create(model=GPT, **ASK),
        "embeddings": lambda client: client.embeddings.create(model="text-embedding-3-small", input="hello"),
    }
    way = {"path_template": "/deployments/{model}/{path}", "query": {"api-version": "2024-10-21"}, "auth": "api-key"}
    there = {"url": f"{services.mock}/openai", "provider_type": "chat-compatible"}
    with key_for(services, f"azure-{call}", **there, **way) as key:
        ours = sent(services, calls[call], through(services, key))
    assert ours == sent(services, calls[call], of_sdk(services))
    assert ours["path"].startswith("/openai/deployments/")


def test_azure_responses(services):
    def ask(client):
        return client.responses.create(model=GPT, input="Say hello.")

    way = {"path_template": "/{path}", "query": {"api-version": "2024-10-21"}, "auth": "api-key"}
    there = {"url": f"{services.mock}/openai", "provider_type": "responses"}
    with key_for(services, "azure-responses", **there, **way) as key:
        ours = sent(services, ask, through(services, key))
    assert ours == sent(services, ask, of_sdk(services))


def test_azure_v1(services):
    def ask(client):
        return client.chat.completions.create(model=GPT, **ASK)

    there = {"url": f"{services.mock}/openai/v1", "provider_type": "chat-compatible"}
    with key_for(services, "azure-v1", **there) as key:
        ours = sent(services, ask, through(services, key))
    assert ours == sent(services, ask, openai.OpenAI(base_url=f"{services.mock}/openai/v1", api_key="the-key"))


def ask_claude(client, stream=False):
    if stream:
        return list(client.messages.create(model=CLAUDE, max_tokens=64, stream=True, **ASK))
    return client.messages.create(model=CLAUDE, max_tokens=64, **ASK)


def count_claude(client):
    return client.messages.count_tokens(model=CLAUDE, **ASK)


def claude(services, key):
    return anthropic.Anthropic(base_url=services.proxy, api_key=key, max_retries=0)


@pytest.mark.parametrize("ask", [ask_claude, lambda client: ask_claude(client, True), count_claude])
def test_claude_on_foundry(services, ask):
    base = f"{services.mock}/anthropic"
    with key_for(services, "foundry", url=base, provider_type="native") as key:
        ours = sent(services, ask, claude(services, key))
    theirs = sent(services, ask, anthropic.AnthropicFoundry(base_url=base, api_key="the-key", max_retries=0))
    # It sends the key in both of the headers that the service accepts.
    assert theirs["headers"].pop("api-key") == ours["headers"]["x-api-key"]
    assert ours["headers"].pop("api-key") is None
    assert ours == theirs


@pytest.mark.parametrize("ask", [ask_claude, lambda client: ask_claude(client, True), count_claude])
def test_claude_on_vertex(services, ask):
    place = "/v1/projects/p/locations/global/publishers/anthropic"
    with key_for(services, "vertex", url=services.mock + place, provider_type="native", auth="bearer") as key:
        ours = sent(services, ask, claude(services, key))
    sdk = anthropic.AnthropicVertex(region="global", project_id="p", access_token="the-key", max_retries=0,
                                    base_url=f"{services.mock}/v1")
    assert ours == sent(services, ask, sdk)


def form(request):
    return {name: values[0] for name, values in urllib.parse.parse_qs(request["body"]).items()}


def token_request(services, **provider):
    """The newest form for a token, after a request to a provider whose credential is exchanged for one."""
    with key_for(services, "tokens", provider_type="native", **provider) as key:
        ask_claude(claude(services, key))
        [asked, seen] = services.received(2)
        assert seen["headers"]["authorization"].startswith("Bearer mock-token-")
        return asked


def test_google_accepts_the_assertion(services):
    info = {"type": "service_account", "project_id": "p", "private_key_id": "key-1", "private_key": PEM,
            "client_email": "gateway@p.iam.example", "token_uri": f"{services.mock}/google/token"}
    place = f"{services.mock}/v1/projects/p/locations/global/publishers/anthropic"
    ours = token_request(services, url=place, auth="gcp-service-account", key=json.dumps(info, indent=2))
    judge = service_account.Credentials.from_service_account_info(
        info, scopes=["https://www.googleapis.com/auth/cloud-platform"])
    judge.refresh(google.auth.transport.requests.Request())
    theirs = services.received(1)[0]
    assert (ours["path"], form(ours)["grant_type"]) == (theirs["path"], form(theirs)["grant_type"])
    public = serialization.load_pem_private_key(PEM.encode(), None).public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def claims(request, audience):
        assertion = form(request)["assertion"]
        header = google.auth.jwt.decode_header(assertion)
        read = google.auth.jwt.decode(assertion, certs={"key-1": public}, audience=audience)
        assert read.pop("exp") - read.pop("iat") == 3600
        assert read.pop("aud") == audience
        return header, read

    # The library names Google's own endpoint, whatever the file names.
    assert claims(ours, info["token_uri"]) == claims(theirs, "https://oauth2.googleapis.com/token")


class Recorder(HttpTransport):
    """Answers what azure-identity asks, and keeps it."""

    def __init__(self):
        self.requests = []

    def open(self):
        pass

    def close(self):
        pass

    def __exit__(self, *_):
        pass

    def send(self, request, **_):
        self.requests.append(request)
        tenant = "https://login.microsoftonline.com/tenant-1"
        known = {"token_endpoint": f"{tenant}/oauth2/v2.0/token", "issuer": f"{tenant}/v2.0",
                 "authorization_endpoint": f"{tenant}/oauth2/v2.0/authorize", "tenant_discovery_endpoint": tenant}
        token = {"access_token": "t", "expires_in": 3599, "token_type": "Bearer"}
        return Answer(token if request.method == "POST" else known)


class Answer:
    status_code, reason, content_type, headers = 200, "OK", "application/json", {"content-type": "application/json"}

    def __init__(self, body):
        self.body = json.dumps(body)

    def text(self, encoding=None):
        return self.body


def test_azure_identity_sends_the_same_form(services):
    secret = {"tenant_id": "tenant-1", "client_id": "client-1", "client_secret": "a~secret.of-it", "authority": services.mock}
    ours = token_request(services, url=f"{services.mock}/anthropic", auth="azure-entra", key=json.dumps(secret))
    recorder = Recorder()
    judge = azure.identity.ClientSecretCredential("tenant-1", "client-1", "a~secret.of-it", transport=recorder)
    judge.get_token("https://cognitiveservices.azure.com/.default")
    theirs = recorder.requests[-1]
    asked = theirs.data if isinstance(theirs.data, dict) else dict(urllib.parse.parse_qsl(theirs.data))
    assert ours["path"] == urllib.parse.urlparse(theirs.url).path
    # What it sends beyond the standard are its own name and figures.
    assert form(ours) == {name: asked[name] for name in ("grant_type", "client_id", "client_secret", "scope")}
    assert set(asked) - set(form(ours)) <= {"client_info", "x-client-sku", "x-client-ver", "x-client-os", "x-client-cpu"}
