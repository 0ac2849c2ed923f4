"""The official SDKs at the endpoints beside the replies: embeddings, images, sound, moderation and others."""

import io

import openai
import pytest
from conftest import PRICE, call
from google import genai
from google.genai import types
from received import PNG

FORMAT = "chat-compatible"
OPENAI = ("via-chat-compatible", "via-responses")
SOUND = ("a.wav", io.BytesIO(b"RIFF....WAVEfmt " + bytes(200)), "audio/wav")


@pytest.fixture
def client(services, account):
    return openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=account.key, max_retries=0, timeout=20)


@pytest.fixture
def google(services, account):
    options = types.HttpOptions(base_url=services.proxy, timeout=20_000)
    return genai.Client(api_key=account.key, vertexai=False, http_options=options)


# The SDK asks for Base64 by itself, and decodes it.
@pytest.mark.parametrize("served", [*OPENAI, "via-alt-cli"])
@pytest.mark.parametrize("encoding", [None, "float"])
def test_openai_embeddings(client, account, served, encoding):
    form = {"encoding_format": encoding} if encoding else {}
    reply = client.embeddings.create(model=served, input=["one", "two"], dimensions=4, **form)
    assert [item.embedding for item in reply.data] == [[0.0, 1.0, 2.0, 3.0]] * 2
    assert reply.usage.prompt_tokens == account.log(1)[-1]["inputTokens"]


@pytest.mark.parametrize("served", ["via-alt-cli", *OPENAI])
def test_google_embeddings(google, served):
    config = types.EmbedContentConfig(output_dimensionality=4, task_type="CLUSTERING")
    reply = google.models.embed_content(model=served, contents=["one", "two"], config=config)
    assert [item.values for item in reply.embeddings] == [[0.0, 1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize("served", OPENAI)
def test_images(client, services, account, served):
    kind = served.removeprefix("via-")
    made = client.images.generate(model=served, prompt="a cat", n=2, size="1024x1024")
    assert len(made.data) == 2 and made.data[0].b64_json
    assert account.log(1)[-1]["outputTokens"] == made.usage.output_tokens
    edited = client.images.edit(model=served, image=[("a.png", PNG, "image/png")], prompt="a hat")
    assert edited.data[0].b64_json
    sent = services.received(1)[0]
    assert sent["path"] == "/v1/images/edits" and kind in sent["headers"]["authorization"]
    events = list(client.images.generate(model=served, prompt="a cat", stream=True, partial_images=1))
    assert [event.type for event in events] == ["image_generation.partial_image", "image_generation.completed"]


@pytest.mark.parametrize("served", OPENAI)
def test_sound(client, account, served):
    spoken = client.audio.speech.create(model=served, input="hello", voice="ash")
    assert spoken.response.headers["content-type"] == "audio/mpeg" and len(spoken.content) == 5 * 64
    text = client.audio.transcriptions.create(model=served, file=SOUND)
    assert text.text == "This is a mock recording." and text.usage.type == "tokens"
    assert account.log(2)[-1]["inputTokens"] == text.usage.input_tokens
    assert client.audio.transcriptions.create(model=served, file=SOUND, response_format="text") == f"{text.text}\n"
    events = list(client.audio.transcriptions.create(model=served, file=SOUND, stream=True))
    assert [event.type for event in events] == ["transcript.text.delta", "transcript.text.done"]
    assert client.audio.translations.create(model=served, file=SOUND).text == text.text


@pytest.mark.parametrize("served", OPENAI)
def test_completions_and_moderations(client, account, served):
    whole = client.completions.create(model=served, prompt="a", max_tokens=9)
    assert "mock model" in whole.choices[0].text
    assert account.log(1)[-1]["outputTokens"] == whole.usage.completion_tokens
    chunks = list(client.completions.create(model=served, prompt="a", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert not client.moderations.create(model=served, input="a").results[0].flagged
    # A moderation reports no tokens: they are estimated, and priced like any others.
    entry = account.log(3)[-1]
    assert entry["estimated"]
    assert entry["costUsd"] == pytest.approx(entry["inputTokens"] * PRICE["input_cost_per_token"], abs=1e-12)


def test_compact_and_count(client, account):
    served = "via-responses"
    shortened = client.responses.compact(model=served, input="hello")
    assert shortened.output[-1].type == "compaction"
    entry = account.log(1)[-1]
    assert entry["inputTokens"] == shortened.usage.input_tokens
    cost = entry["inputTokens"] * PRICE["input_cost_per_token"] + entry["outputTokens"] * PRICE["output_cost_per_token"]
    assert entry["costUsd"] == pytest.approx(cost, abs=1e-12)
    counted = client.responses.input_tokens.count(model=served, input="hello")
    assert counted.object == "response.input_tokens" and counted.input_tokens > 0


def test_stored_replies(client):
    reply = client.responses.create(model="via-responses", input="hello")
    assert client.responses.retrieve(reply.id).id == reply.id
    assert [item.type for item in client.responses.input_items.list(reply.id)] == ["message"]
    assert client.responses.cancel(reply.id).status == "cancelled"
    client.responses.delete(reply.id)
    with pytest.raises(openai.NotFoundError, match="not found"):
        client.responses.retrieve("resp_of_nobody")


def test_rerank(services, account):
    body = {"model": "via-chat-compatible", "query": "q", "documents": ["a", "b"], "top_n": 1}
    status, reply = call(f"{services.proxy}/v1/rerank", body, {"authorization": f"Bearer {account.key}"})
    assert status == 200 and [item["index"] for item in reply["results"]] == [0]


def test_errors_are_those_of_the_service(client):
    with pytest.raises(openai.NotFoundError, match="no provider serves the model"):
        client.embeddings.create(model="nobody", input="a")
    with pytest.raises(openai.NotFoundError, match="an administrator can add one"):
        client.images.generate(model="via-native", prompt="a")
    with pytest.raises(openai.BadRequestError, match="Missing required parameter: 'voice'"):
        client.audio.speech.create(model="via-responses", input="a", voice=openai.omit)
