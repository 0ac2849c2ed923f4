"""The openai SDK as client of chat completions."""

import json

import openai
import pytest
from conftest import mock
from received import PNG, PNG_BASE64

FORMAT = "chat-compatible"
TEXT = "naïve 東京 🚀 answer from far away"
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {
    "type": "object", "properties": {"at": {"type": "string"}}}}}


@pytest.fixture
def client(services, account):
    return openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=account.key, max_retries=0, timeout=20)


def says(text):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def test_answer(client, account, model):
    wanted = mock(text=TEXT, usage={"input": 120, "output": 7})
    reply = client.chat.completions.create(model=model, messages=says(f"hello {wanted}"))
    assert reply.choices[0].message.content == TEXT
    assert reply.choices[0].finish_reason == "stop"
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (120, 7, 127)
    account.check(model, inputTokens=120, outputTokens=7)


@pytest.mark.parametrize("asks_usage", [False, True])
def test_stream(client, account, model, asks_usage):
    wanted = mock(text=TEXT, events=6, chunking="split", usage={"input": 120, "output": 7})
    options = {"stream_options": {"include_usage": True}} if asks_usage else {}
    asked = {"model": model, "messages": says(f"hello {wanted}"), "stream": True} | options
    chunks = list(client.chat.completions.create(**asked))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == TEXT
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    usages = [chunk.usage for chunk in chunks if chunk.usage]
    assert len(usages) == (1 if asks_usage else 0)
    assert all(chunk.choices for chunk in chunks) is not asks_usage
    if asks_usage:
        assert (usages[0].prompt_tokens, usages[0].completion_tokens) == (120, 7)
    account.check(model, streamed=True, inputTokens=120, outputTokens=7)


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_round_trip(client, account, model, streamed):
    def turn(messages):
        asked = {"model": model, "messages": messages, "tools": [TOOL]}
        if not streamed:
            return client.chat.completions.create(**asked).choices[0]
        with client.chat.completions.stream(**asked) as stream:
            for _ in stream:
                pass
            return stream.get_final_completion().choices[0]

    messages = says('use tool look {"at": "the moon"} and use tool look {"at": "東京"}')
    first = turn(messages)
    calls = first.message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"at": "the moon"}, {"at": "東京"}]
    assert first.finish_reason == "tool_calls"
    said = {"role": "assistant", "tool_calls": [
        {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
        for call in calls]}
    results = [{"role": "tool", "tool_call_id": call.id, "content": f"saw {json.loads(call.function.arguments)['at']}"}
               for call in calls]
    last = turn(messages + [said] + results)
    assert "saw the moon" in last.message.content and "saw 東京" in last.message.content
    account.check(model, count=2, streamed=streamed)


def test_image(client, account, services, model):
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_BASE64}"}}
    content = [image, {"type": "text", "text": f"what is it? {mock(text=TEXT)}"}]
    reply = client.chat.completions.create(model=model, messages=says(content))
    assert reply.choices[0].message.content == TEXT
    assert services.images(model) == [("image/png", PNG)]
    account.check(model)


def test_refused_request(client, model):
    error = {"message": "this cannot be asked"}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=says(f"hello {mock(status=400, error=error)}"))
    assert "this cannot be asked" in str(caught.value)


def test_wrong_key(services, model):
    client = openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=services.bad_key, max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model=model, messages=says("hello"))


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="no-such-model", messages=says("hello"))


def test_error_in_mid_stream(client, model):
    with pytest.raises(openai.APIError) as caught:
        wanted = mock(words=60, between_events_ms=10, error_after=12, error={"message": "too much at once"})
        list(client.chat.completions.create(model=model, messages=says(f"hello {wanted}"), stream=True))
    assert "too much at once" in str(caught.value)


def test_models(client, services):
    shown = [model.id for model in client.models.list()]
    assert shown == sorted(set(shown)) and shown
    if not services.direct:
        assert client.models.retrieve("via-chat-compatible").id == "via-chat-compatible"
