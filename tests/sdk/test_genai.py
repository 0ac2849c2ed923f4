"""The google-genai SDK as client."""

import pytest
from conftest import mock
from google import genai
from google.genai import errors, types
from received import PNG

FORMAT = "alt-cli"
TEXT = "naïve 東京 🚀 answer from far away"
LOOK = types.Tool(function_declarations=[types.FunctionDeclaration(
    name="look", description="Looks.",
    parameters_json_schema={"type": "object", "properties": {"at": {"type": "string"}}})])


def client_for(services, key, **more):
    options = types.HttpOptions(base_url=services.proxy, timeout=20_000, **more)
    return genai.Client(api_key=key, vertexai=False, http_options=options)


@pytest.fixture
def client(services, account):
    return client_for(services, account.key)


def test_answer(client, account, model):
    wanted = mock(text=TEXT, usage={"input": 120, "output": 7})
    config = types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.5, max_output_tokens=200)
    reply = client.models.generate_content(model=model, contents=f"hello {wanted}", config=config)
    assert reply.text == TEXT
    assert reply.candidates[0].finish_reason == types.FinishReason.STOP
    usage = reply.usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count) == (120, 7, 127)
    account.check(model, inputTokens=120, outputTokens=7)


def test_stream(client, account, model):
    wanted = mock(text=TEXT, events=6, chunking="split", usage={"input": 120, "output": 7})
    chunks = list(client.models.generate_content_stream(model=model, contents=f"hello {wanted}"))
    assert "".join(chunk.text or "" for chunk in chunks) == TEXT and len(chunks) > 1
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    usage = chunks[-1].usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count) == (120, 7)
    account.check(model, streamed=True, inputTokens=120, outputTokens=7)


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_round_trip(client, account, model, streamed):
    off = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=[LOOK], automatic_function_calling=off)

    def turn(contents):
        if not streamed:
            return client.models.generate_content(model=model, contents=contents, config=config).candidates[0].content.parts
        chunks = client.models.generate_content_stream(model=model, contents=contents, config=config)
        return [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]

    user = types.UserContent('use tool look {"at": "the moon"} and use tool look {"at": "東京"}')
    parts = [part for part in turn([user]) if part.function_call]
    assert [part.function_call.args for part in parts] == [{"at": "the moon"}, {"at": "東京"}]
    results = [types.Part(function_response=types.FunctionResponse(
        id=part.function_call.id, name="look", response={"output": f"saw {part.function_call.args['at']}"})) for part in parts]
    last = turn([user, types.ModelContent(parts), types.UserContent(results)])
    text = "".join(part.text or "" for part in last)
    assert "saw the moon" in text and "saw 東京" in text
    account.check(model, count=2, streamed=streamed)


def test_image(client, account, services, model):
    # This SDK writes images in the URL-safe alphabet, which the other services refuse.
    contents = [types.Part.from_bytes(data=PNG, mime_type="image/png"), f"what is it? {mock(text=TEXT)}"]
    assert client.models.generate_content(model=model, contents=contents).text == TEXT
    assert services.images(model) == [("image/png", PNG)]
    account.check(model)


def test_refused_request(client, model):
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(
            model=model, contents=f"hello {mock(status=400, error={'message': 'this cannot be asked'})}")
    assert caught.value.code == 400 and "this cannot be asked" in str(caught.value)


def test_wrong_key(services, model):
    stranger = client_for(services, services.bad_key)
    with pytest.raises(errors.ClientError) as caught:
        stranger.models.generate_content(model=model, contents="hello")
    assert (caught.value.code, caught.value.status) == (401, "UNAUTHENTICATED")


def test_unknown_model(client):
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="no-such-model", contents="hello")
    assert caught.value.code == 404


def test_error_in_mid_stream(client, model):
    with pytest.raises(errors.APIError) as caught:
        wanted = mock(words=60, between_events_ms=10, error_after=12, error={"message": "too much at once"})
        list(client.models.generate_content_stream(model=model, contents=f"hello {wanted}"))
    assert "too much at once" in str(caught.value)


def test_count_tokens(client):
    assert 50 <= client.models.count_tokens(model="via-alt-cli", contents="x" * 400).total_tokens <= 200


def test_models(services):
    # With a base URL this SDK requests /v1, where the listing has another format; its own is under /v1beta.
    client = client_for(services, services.key, api_version="v1beta")
    shown = [model.name for model in client.models.list()]
    assert shown and all(name.startswith("models/") for name in shown)
    if not services.direct:
        assert "models/via-alt-cli" in shown
