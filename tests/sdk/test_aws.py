"""AWS's own library as judge: botocore verifies each signature that the gateway makes, over the bytes that the mock
received. What the SDK `anthropic[bedrock]` and boto3 send to Bedrock equals what the gateway sends.
"""

import hashlib
import json
import re
import urllib.parse

import anthropic
import boto3
import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from test_clouds import ASK, CLAUDE, ask_claude, claude, count_claude, key_for, through

MODEL = "us.anthropic.claude-sonnet-4-6-v1:0"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
TOKEN = {"session_token": "FwoGZXIvYXdzEXAMPLE//token+of/the==test"}
REGION = "us-east-1"


def at_bedrock(services, **keys):
    return {"url": f"{services.mock}/model", "provider_type": "native", "auth": "aws-sigv4",
            "key": json.dumps(KEYS | {"region": REGION} | keys), "model_redirects": {CLAUDE: MODEL}}


def raw(seen):
    """The body as it was sent: the client and the gateway write JSON without spaces."""
    body = seen["body"]
    return (body if isinstance(body, str) else json.dumps(body, separators=(",", ":"), ensure_ascii=False)).encode()


def verify(seen, service, keys):
    """Has botocore sign the same request at the same time."""
    headers, body = seen["headers"], raw(seen)
    assert len(body) == seen["body_bytes"]
    signed = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                          headers["authorization"])
    scope, names, signature = signed.groups()
    given = {name: headers[name] for name in names.split(";") if name != "host"}
    # AWS encodes each letter that it does not name; botocore takes the query as it stands.
    query = urllib.parse.urlencode(urllib.parse.parse_qsl(seen["query"]), quote_via=urllib.parse.quote, safe="-_.~")
    query = f"?{query}" if query else ""
    request = botocore.awsrequest.AWSRequest(seen["method"], f"http://{headers['host']}{seen['path']}{query}", given, body)
    request.context["timestamp"] = headers["x-amz-date"]
    credentials = botocore.credentials.Credentials(keys["access_key_id"], keys["secret_access_key"], keys.get("session_token"))
    judge = botocore.auth.SigV4Auth(credentials, service, REGION)
    canonical = judge.canonical_request(request)
    assert canonical.splitlines()[-1] == hashlib.sha256(body).hexdigest()
    assert judge.signature(judge.string_to_sign(request, canonical), request) == signature
    assert scope == judge.scope(request)
    assert headers.get("x-amz-security-token") == keys.get("session_token")


@pytest.mark.parametrize("keys", [{}, TOKEN], ids=["lasting", "temporary"])
@pytest.mark.parametrize("ask", [ask_claude, lambda client: ask_claude(client, True), count_claude],
                         ids=["whole", "stream", "count"])
def test_botocore_verifies_requests_to_invoke_model(services, ask, keys):
    with key_for(services, "bedrock", **at_bedrock(services, **keys)) as key:
        ask(claude(services, key))
    verify(services.received(1)[0], "bedrock", KEYS | keys)


@pytest.mark.parametrize("service", ["bedrock", "bedrock-mantle", "aws-external-anthropic"])
def test_botocore_verifies_requests_to_the_messages_endpoint(services, service):
    there = at_bedrock(services, service=service) | {"url": f"{services.mock}/anthropic"}
    with key_for(services, "messages", **there) as key:
        ask_claude(claude(services, key), True)
        seen = services.received(1)[0]
    assert seen["path"] == "/anthropic/v1/messages"
    verify(seen, service, KEYS)


def test_botocore_verifies_parameters_and_letters(services):
    there = at_bedrock(services) | {"url": f"{services.mock}/openai/v1", "provider_type": "chat-compatible",
                                    "query": {"b": "1 ~@/", "a": "ä&="}}
    with key_for(services, "openai-at-aws", **there) as key:
        through(services, key).chat.completions.create(model="m", messages=[{"role": "user", "content": "Größe “1”"}])
    verify(services.received(1)[0], "bedrock", KEYS)


def test_botocore_verifies_the_request_for_a_role(services):
    role = {"role_arn": "arn:aws:iam::123456789012:role/gateway", "external_id": "of the operator",
            "sts_endpoint": f"{services.mock}/sts"}
    with key_for(services, "role", **at_bedrock(services, **TOKEN, **role)) as key:
        ask_claude(claude(services, key))
        [asked, seen] = services.received(2)
    verify(asked, "sts", KEYS | TOKEN)
    number = re.fullmatch(r"mock-session-token-(\d+)", seen["headers"]["x-amz-security-token"]).group(1)
    issued = {"access_key_id": f"ASIAMOCK{int(number):08}", "secret_access_key": f"mock-secret-key-{number}",
              "session_token": seen["headers"]["x-amz-security-token"]}
    verify(seen, "bedrock", issued)
    sts = boto3.client("sts", endpoint_url=f"{services.mock}/sts", region_name=REGION, **aws())
    sts.assume_role(RoleArn=role["role_arn"], ExternalId=role["external_id"], RoleSessionName="tollgate")
    theirs = services.received(1)[0]
    assert dict(urllib.parse.parse_qsl(asked["body"])) == dict(urllib.parse.parse_qsl(theirs["body"]))


def aws():
    return {"aws_access_key_id": KEYS["access_key_id"], "aws_secret_access_key": KEYS["secret_access_key"]}


def sdk(services):
    return anthropic.AnthropicBedrock(aws_access_key=KEYS["access_key_id"], aws_secret_key=KEYS["secret_access_key"],
                                      aws_region=REGION, base_url=services.mock, max_retries=0)


def what(seen):
    return {"path": urllib.parse.unquote(seen["path"]), "query": seen["query"], "body": seen["body"]}


BETAS = ["interleaved-thinking-2025-05-14", "context-1m-2025-08-07"]


def ask_beta(client, model):
    return client.beta.messages.create(model=model, max_tokens=64, betas=BETAS, **ASK)


def ask_whole(client, model):
    return client.messages.create(model=model, max_tokens=64, **ASK)


def ask_stream(client, model):
    return [event.type for event in client.messages.create(model=model, max_tokens=64, stream=True, **ASK)]


@pytest.mark.parametrize("ask", [ask_whole, ask_stream, ask_beta])
def test_the_sdk_sends_the_same(services, ask):
    with key_for(services, "sdk", **at_bedrock(services)) as key:
        answer = ask(claude(services, key), CLAUDE)
        ours = what(sent_raw(services))
    there = ask(sdk(services), MODEL)
    assert ours == what(sent_raw(services))
    if ask is ask_stream:
        # The SDK reads the mock's frames as the gateway does.
        assert answer == there and answer[-1] == "message_stop"


def sent_raw(services):
    return services.received(1)[0]


def test_boto3_counts_the_same(services):
    with key_for(services, "count", **at_bedrock(services)) as key:
        counted = count_claude(claude(services, key)).input_tokens
        ours = what(sent_raw(services))
    client = boto3.client("bedrock-runtime", endpoint_url=services.mock, region_name=REGION, **aws())
    # The version is that of the SDK's header.
    body = json.dumps({"anthropic_version": "2026-10-21", **ASK, "max_tokens": 1}, separators=(",", ":"))
    theirs = client.count_tokens(modelId=MODEL.removeprefix("us."), input={"invokeModel": {"body": body.encode()}})
    assert theirs["inputTokens"] == counted
    assert ours == what(sent_raw(services))
