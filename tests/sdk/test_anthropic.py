"""The anthropic SDK as client."""

import anthropic
import pytest
from conftest import mock
from received import PNG, PNG_BASE64

FORMAT = "native"
TEXT = "naïve 東京 🚀 answer from far away"
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}


@pytest.fixture
def client(services, account):
    return anthropic.Anthropic(base_url=services.proxy, api_key=account.key, max_retries=0, timeout=20)


def ask(text, **more):
    return {"max_tokens": 200, "messages": [{"role": "user", "content": text}]} | more


def test_answer(client, account, model):
    reply = client.messages.create(model=model, **ask(f"hello {mock(text=TEXT, usage={'input': 120, 'output': 7})}"))
    assert [block.text for block in reply.content] == [TEXT]
    assert reply.stop_reason == "end_turn"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (120, 7)
    account.check(model, inputTokens=120, outputTokens=7)


def test_api_version(client, services, model):
    # The SDK's own version goes on to providers of its format, and so does what it refuses.
    sampled = {"extra_body": {"temperature": 0.5}}
    if model == "via-native":
        with pytest.raises(anthropic.BadRequestError, match="temperature: Extra inputs are not permitted"):
            client.messages.create(model=model, **ask("hello"), **sampled)
        sent = services.received(1)[0]["headers"]["anthropic-version"]
        assert sent == "2026-10-21" == client.default_headers["anthropic-version"]
        client.messages.create(model=model, **ask("hello"))
    else:
        client.messages.create(model=model, **ask("hello"), **sampled)
        assert "anthropic-version" not in services.received(1)[0]["headers"]


def test_stream(client, account, model):
    wanted = mock(text=TEXT, events=6, chunking="split", usage={"input": 120, "output": 7})
    with client.messages.stream(model=model, **ask(f"hello {wanted}")) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert "".join(pieces) == TEXT and len(pieces) > 1
    assert final.stop_reason == "end_turn"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (120, 7)
    account.check(model, streamed=True, inputTokens=120, outputTokens=7)


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_round_trip(client, account, model, streamed):
    def turn(messages):
        asked = {"model": model, "max_tokens": 200, "tools": [TOOL], "messages": messages}
        if not streamed:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()

    messages = [{"role": "user", "content": 'use tool look {"at": "the moon"} and use tool look {"at": "東京"}'}]
    first = turn(messages)
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"at": "the moon"}, {"at": "東京"}]
    assert first.stop_reason == "tool_use"
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": f"saw {call.input['at']}"} for call in calls]
    last = turn(messages + [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}])
    text = "".join(block.text for block in last.content)
    assert "saw the moon" in text and "saw 東京" in text
    account.check(model, count=2, streamed=streamed)


def test_thinking(client, services):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    asked = ask(f"hello {mock(thinking='let me see', text=TEXT)}", max_tokens=2000, thinking=thinking)
    with client.messages.stream(model="via-native", **asked) as stream:
        final = stream.get_final_message()
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert final.content[0].thinking == "let me see" and final.content[0].signature


def test_image(client, account, services, model):
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    content = [{"type": "image", "source": source}, {"type": "text", "text": f"what is it? {mock(text=TEXT)}"}]
    reply = client.messages.create(model=model, **ask(content))
    assert reply.content[0].text == TEXT
    assert services.images(model) == [("image/png", PNG)]
    account.check(model)


def test_refused_request(client, model):
    error = {"type": "invalid_request_error", "message": "this cannot be asked"}
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(model=model, **ask(f"hello {mock(status=400, error=error)}"))
    assert "this cannot be asked" in str(caught.value)


def test_wrong_key(services, model):
    with pytest.raises(anthropic.AuthenticationError) as caught:
        client = anthropic.Anthropic(base_url=services.proxy, api_key=services.bad_key, max_retries=0)
        client.messages.create(model=model, **ask("hello"))
    assert caught.value.body["error"]["type"] == "authentication_error"


def test_unknown_model(client):
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(model="no-such-model", **ask("hello"))


def test_error_in_mid_stream(client, model):
    error = {"type": "overloaded_error", "message": "too much at once"}
    with pytest.raises(anthropic.APIStatusError) as caught:
        wanted = mock(words=60, between_events_ms=10, error_after=12, error=error)
        with client.messages.stream(model=model, **ask(f"hello {wanted}")) as stream:
            list(stream.text_stream)
    assert "too much at once" in str(caught.value)


def test_count_tokens(client):
    counted = client.messages.count_tokens(model="via-native", messages=[{"role": "user", "content": "x" * 400}])
    assert 50 <= counted.input_tokens <= 200


def test_models(client, services):
    shown = [model.id for model in client.models.list()]
    assert shown == sorted(set(shown)) and shown
    if not services.direct:
        assert "via-native" in shown
        assert client.models.retrieve("via-native").id == "via-native"
