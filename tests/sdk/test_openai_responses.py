"""The openai SDK as client of the responses format."""

import json

import openai
import pytest
from conftest import mock
from received import PNG, PNG_BASE64

FORMAT = "responses"
TEXT = "naïve 東京 🚀 answer from far away"
TOOL = {"type": "function", "name": "look", "description": "Looks.", "strict": False,
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}


@pytest.fixture
def client(services, account):
    return openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=account.key, max_retries=0, timeout=20)


def test_answer(client, account, model):
    wanted = mock(text=TEXT, usage={"input": 120, "output": 7})
    reply = client.responses.create(model=model, instructions="Be brief.", input=f"hello {wanted}")
    assert reply.output_text == TEXT
    assert reply.status == "completed"
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (120, 7, 127)
    account.check(model, inputTokens=120, outputTokens=7)


def test_stream(client, account, model):
    wanted = mock(text=TEXT, events=6, chunking="split", usage={"input": 120, "output": 7})
    events = []
    with client.responses.stream(model=model, input=f"hello {wanted}") as stream:
        for event in stream:
            events.append(event)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    for kind in ("output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done"):
        assert kinds.count(f"response.{kind}") == 1, kinds
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.output_text == TEXT and len(final.output) == 1
    assert (final.usage.input_tokens, final.usage.output_tokens) == (120, 7)
    account.check(model, streamed=True, inputTokens=120, outputTokens=7)


def test_background(client, services, account):
    if account.key_id:
        services.action("keys/editKey", {"keyId": account.key_id, "allowedFeatures": ["background"]})
    wanted = mock(text=TEXT, usage={"input": 120, "output": 7})
    reply = client.responses.create(model="via-responses", input=f"hello {wanted}", background=True)
    assert reply.status == "queued" and reply.background and reply.output == []
    fetches = 0
    while reply.status in ("queued", "in_progress"):
        reply = client.responses.retrieve(reply.id)
        fetches += 1
    assert (reply.status, reply.output_text, reply.usage.total_tokens) == ("completed", TEXT, 127)
    if account.key_id:
        entries = account.log(1 + fetches)
        billed = [entry for entry in entries if entry["costUsd"]]
        assert [(entry["inputTokens"], entry["outputTokens"]) for entry in billed] == [(120, 7)]
        assert not billed[0]["estimated"] and billed[0]["outcome"] == "completed"


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_round_trip(client, account, model, streamed):
    def turn(items):
        asked = {"model": model, "input": items, "tools": [TOOL]}
        if not streamed:
            return client.responses.create(**asked)
        with client.responses.stream(**asked) as stream:
            for _ in stream:
                pass
            return stream.get_final_response()

    items = [{"role": "user", "content": 'use tool look {"at": "the moon"} and use tool look {"at": "東京"}'}]
    calls = [item for item in turn(items).output if item.type == "function_call"]
    assert [json.loads(call.arguments) for call in calls] == [{"at": "the moon"}, {"at": "東京"}]
    for call in calls:
        said = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        items.append(said | ({"id": call.id} if call.id else {}))
    for call in calls:
        seen = f"saw {json.loads(call.arguments)['at']}"
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": seen})
    text = turn(items).output_text
    assert "saw the moon" in text and "saw 東京" in text
    account.check(model, count=2, streamed=streamed)


def test_cut_short(client, model):
    reply = client.responses.create(model=model, input=f"hello {mock(text=TEXT, finish='length')}")
    assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_image(client, account, services, model):
    image = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG_BASE64}"}
    content = [image, {"type": "input_text", "text": f"what is it? {mock(text=TEXT)}"}]
    reply = client.responses.create(model=model, input=[{"role": "user", "content": content}])
    assert reply.output_text == TEXT
    assert services.images(model) == [("image/png", PNG)]
    account.check(model)


def test_refused_request(client, model):
    error = {"message": "this cannot be asked"}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=model, input=f"hello {mock(status=400, error=error)}")
    assert "this cannot be asked" in str(caught.value)


def test_wrong_key(services, model):
    client = openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=services.bad_key, max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        client.responses.create(model=model, input="hello")


def test_error_in_mid_stream(client, model):
    # This SDK raises an error event whose error is an object, and passes others to the caller.
    wanted = mock(words=60, between_events_ms=10, error_after=12, error={"message": "too much at once"})
    events = []
    try:
        events.extend(client.responses.create(model=model, input=f"hello {wanted}", stream=True))
    except openai.APIError as error:
        assert "too much at once" in str(error)
        return
    assert events[-1].type in ("error", "response.failed")
    assert "too much at once" in events[-1].to_json()
    assert [event.sequence_number for event in events] == list(range(len(events)))


def ended(connection):
    """The events of a reply over a WebSocket, up to its end."""
    events = []
    for event in connection:
        events.append(event)
        if event.type in ("response.completed", "response.failed", "response.incomplete", "error"):
            return events
    raise AssertionError(events)


def test_websocket(client, account, services, model):
    wanted = mock(text=TEXT, events=6, chunking="split", usage={"input": 120, "output": 7})
    with client.responses.connect() as connection:
        connection.response.create(model=model, input=f"hello {wanted}", store=False)
        events = ended(connection)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        first = events[-1].response
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == TEXT
        assert (first.usage.input_tokens, first.usage.output_tokens) == (120, 7)
        # Only the new input: the connection knows the rest.
        connection.response.create(model=model, input=f"again {wanted}", store=False, previous_response_id=first.id)
        assert ended(connection)[-1].type == "response.completed"
        sent = json.dumps(services.received(1)[0]["body"], ensure_ascii=False)
        assert sent.index("hello") < sent.index("again")
        # In the first question and in its answer.
        assert sent[:sent.index("again")].count(TEXT) == 2, sent
        # A turn that fails does not end the connection.
        connection.response.create(model="unknown", input="hello")
        error = ended(connection)[-1]
        assert (error.type, error.status) == ("error", 404)
        connection.response.create(model=model, input="hello", generate=False)
        assert ended(connection)[-1].response.usage.total_tokens == 0
    if account.key_id is not None:
        assert [entry["statusCode"] for entry in account.log(3)] == [200, 200, 404]


def test_steering_over_a_websocket(client, account, model):
    with client.responses.connect() as connection:
        connection.response.create(model=model, input=f"hello {mock(words=40, events=20, between_events_ms=100)}")
        events = []
        for event in connection:
            events.append(event)
            if event.type == "response.created":
                connection.response.steer(input="rather this", previous_response_id=event.response.id)
            if event.type in ("response.completed", "response.incomplete"):
                break
        accepted = [event for event in events if event.type == "response.steer.accepted"]
        assert len(accepted) == 1 and accepted[0].steer.id
        successor = ended(connection)
        assert successor[0].type == "response.created" and successor[-1].type == "response.completed"
    if account.key_id is not None:
        account.log(2)


def test_websocket_with_a_wrong_key(services):
    client = openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=services.bad_key, max_retries=0)
    with pytest.raises(Exception) as caught:
        client.responses.connect().enter()
    assert "401" in str(caught.value)
