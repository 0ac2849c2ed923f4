"""botocore as judge of Bedrock's Converse: each body that the gateway makes is one that boto3 would send, member by
member, and boto3 reads the mock's replies and streams.
"""

import base64
import json
import pathlib
import urllib.parse

import boto3
import botocore.config
import botocore.loaders
import botocore.model
import botocore.serialize
import botocore.validate
import pytest
from test_aws import KEYS, REGION, at_bedrock, aws, verify, what
from test_clouds import CLAUDE, ask_claude, claude, count_claude, key_for

NOVA = "us.amazon.nova-pro-v1:0"
ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = sorted((ROOT / "golden").glob("*/converse/*.json"))
SERVICE = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2"))


def parameters(shape, value):
    """The JSON of a request as boto3 takes it. A member that the service does not know fails."""
    if shape.type_name == "structure" and not shape.is_document_type:
        unknown = set(value) - set(shape.members)
        assert not unknown, f"{shape.name} has no {unknown}"
        return {name: parameters(shape.members[name], inner) for name, inner in value.items()}
    if shape.type_name == "list":
        return [parameters(shape.member, inner) for inner in value]
    if shape.type_name == "blob":
        return base64.b64decode(value, validate=True)
    if shape.type_name == "string":
        assert isinstance(value, str)
        assert not shape.enum or value in shape.enum, f"{shape.name}: {value}"
        assert len(value) >= shape.metadata.get("min", 0), f"{shape.name}: {value!r}"
        assert len(value) <= shape.metadata.get("max", len(value)), f"{shape.name}: {value!r}"
    if shape.type_name in ("integer", "float"):
        assert shape.metadata.get("min", value) <= value <= shape.metadata.get("max", value), f"{shape.name}: {value}"
    return value


def judged(operation, body):
    """Has botocore make the request of its own: it is the same."""
    model = SERVICE.operation_model(operation)
    given = parameters(model.input_shape, body) | {"modelId": NOVA}
    report = botocore.validate.ParamValidator().validate(given, model.input_shape)
    assert not report.has_errors(), report.generate_report()
    made = botocore.serialize.create_serializer("rest-json").serialize_to_request(given, model)
    assert json.loads(made["body"]) == body
    return given


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_botocore_would_send_each_recorded_request(path):
    text = path.read_text(encoding="utf-8")
    if text.startswith("refused: "):
        return
    body = json.loads(text)["body"]
    judged("Converse", body)
    judged("ConverseStream", body)
    roles = [message["role"] for message in body["messages"]]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]


def test_there_are_recorded_requests():
    bodies = [path for path in GOLDEN if not path.read_text(encoding="utf-8").startswith("refused: ")]
    assert len(bodies) > 60


def at_nova(services):
    return at_bedrock(services) | {"model_redirects": {CLAUDE: NOVA}}


def boto(services):
    once = botocore.config.Config(retries={"total_max_attempts": 1})
    return boto3.client("bedrock-runtime", endpoint_url=services.mock, region_name=REGION, config=once, **aws())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_boto3_sends_the_same_and_reads_the_same(services, stream):
    with key_for(services, "converse", **at_nova(services)) as key:
        ours = ask_claude(claude(services, key), stream)
        seen = services.received(1)[0]
    verify(seen, "bedrock", KEYS)
    given = judged("ConverseStream" if stream else "Converse", seen["body"])
    if stream:
        said = [event.delta.text for event in ours if event.type == "content_block_delta"]
        assert [ours[0].type, ours[-1].type] == ["message_start", "message_stop"]
        events = list(boto(services).converse_stream(**given)["stream"])
        deltas = [event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event]
        assert list(events[-1]) == ["metadata"] and list(events[-2]) == ["messageStop"]
        theirs, said = "".join(deltas), "".join(said)
        usage, own = events[-1]["metadata"]["usage"], [event.usage for event in ours if event.type == "message_delta"][0]
    else:
        reply = boto(services).converse(**given)
        assert reply["stopReason"] == "end_turn"
        theirs, said = reply["output"]["message"]["content"][0]["text"], ours.content[0].text
        usage, own = reply["usage"], ours.usage
    assert said and said == theirs
    assert (own.input_tokens, own.output_tokens) == (usage["inputTokens"], usage["outputTokens"])
    assert what(seen) == what(services.received(1)[0])


def test_boto3_counts_the_same(services):
    with key_for(services, "converse-count", **at_nova(services)) as key:
        counted = count_claude(claude(services, key)).input_tokens
        seen = services.received(1)[0]
    verify(seen, "bedrock", KEYS)
    given = judged("CountTokens", seen["body"]) | {"modelId": NOVA.removeprefix("us.")}
    assert boto(services).count_tokens(**given)["inputTokens"] == counted
    assert urllib.parse.unquote(seen["path"]) == f"/model/{NOVA.removeprefix('us.')}/count-tokens"
    assert what(seen) == what(services.received(1)[0])


def test_boto3_reads_the_mocks_calls_and_errors(services):
    client = boto(services)
    tool = {"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object", "properties": {}}}}}
    ask = [{"role": "user", "content": [{"text": 'use tool weather {"city": "Köln"}'}]}]
    given = {"modelId": NOVA, "messages": ask, "toolConfig": {"tools": [tool]}}
    reply = client.converse(**given)
    [call] = [block["toolUse"] for block in reply["output"]["message"]["content"] if "toolUse" in block]
    assert (call["name"], call["input"], reply["stopReason"]) == ("weather", {"city": "Köln"}, "tool_use")
    events = list(client.converse_stream(**given)["stream"])
    [start] = [event["contentBlockStart"]["start"] for event in events if "contentBlockStart" in event]
    assert start["toolUse"]["name"] == "weather"
    with pytest.raises(client.exceptions.ValidationException, match="blank"):
        client.converse(modelId=NOVA, messages=[{"role": "user", "content": [{"text": " "}]}])
