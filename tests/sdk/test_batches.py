"""The official SDKs make batches, and read their results: anthropic, openai and google-genai, with their files."""

import json
import time

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

FORMAT = "native"
OPENAI = ("via-chat-compatible", "via-responses")


def ended(get, is_over):
    for _ in range(200):
        batch = get()
        if is_over(batch):
            return batch
        time.sleep(0.05)
    raise AssertionError(batch)


@pytest.fixture
def claude(services, account):
    return anthropic.Anthropic(base_url=services.proxy, api_key=account.key, max_retries=0, timeout=20)


@pytest.fixture
def client(services, account):
    return openai.OpenAI(base_url=f"{services.proxy}/v1", api_key=account.key, max_retries=0, timeout=20)


def test_message_batches(claude):
    params = {"model": "via-native", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    batches = claude.messages.batches
    made = batches.create(requests=[{"custom_id": f"r{at}", "params": params} for at in range(3)])
    assert made.processing_status == "in_progress"
    other = batches.create(requests=[{"custom_id": "r", "params": params}])
    assert [batch.id for batch in batches.list(limit=1)] == [other.id, made.id]
    assert batches.cancel(other.id).processing_status == "ended"
    batch = ended(lambda: batches.retrieve(made.id), lambda batch: batch.processing_status == "ended")
    assert batch.request_counts.succeeded == 3
    results = list(batches.results(made.id))
    assert [line.custom_id for line in results] == ["r0", "r1", "r2"]
    assert all(line.result.type == "succeeded" for line in results)

    def deleted():
        try:
            return batches.delete(made.id)
        except anthropic.BadRequestError:
            return None  # It is not billed yet.

    assert ended(deleted, lambda done: done is not None).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        batches.retrieve(made.id)


def test_anthropic_files(claude):
    files = claude.beta.files
    made = files.upload(file=("a.txt", b"hello", "text/plain"))
    assert made.type == "file" and made.size_bytes == 5
    assert [file.id for file in files.list()] == [made.id]
    assert files.retrieve_metadata(made.id).filename == "a.txt"
    assert files.delete(made.id).type == "file_deleted"
    with pytest.raises(anthropic.NotFoundError):
        files.retrieve_metadata(made.id)


@pytest.mark.parametrize("served", OPENAI)
def test_openai_batches(client, served):
    def line(at):
        body = {"model": served, "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
        return json.dumps({"custom_id": f"r{at}", "method": "POST", "url": "/v1/chat/completions", "body": body})

    text = "\n".join(line(at) for at in range(3)).encode()
    file = client.files.create(file=("requests.jsonl", text), purpose="batch")
    assert file.bytes == len(text) and client.files.retrieve(file.id).purpose == "batch"
    assert client.files.content(file.id).content == text
    made = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert made.status == "validating"
    assert [batch.id for batch in client.batches.list(limit=1)] == [made.id]
    batch = ended(lambda: client.batches.retrieve(made.id), lambda batch: batch.status == "completed")
    results = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    assert [line["custom_id"] for line in results] == ["r0", "r1", "r2"]
    assert {file.id for file in client.files.list()} == {file.id, batch.output_file_id}
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)
    with pytest.raises(openai.NotFoundError, match="not found"):
        client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")


@pytest.fixture
def gemini(services, account):
    # At v1, the default of the SDK, these paths are those of OpenAI.
    options = types.HttpOptions(base_url=services.proxy, api_version="v1beta", timeout=20_000)
    return genai.Client(api_key=account.key, vertexai=False, http_options=options)


OVER = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}


def test_gemini_batches_of_requests(gemini):
    one = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    made = gemini.batches.create(model="via-alt-cli", src=[one, one], config={"display_name": "b"})
    assert made.state.name == "JOB_STATE_PENDING" and made.display_name == "b"
    other = gemini.batches.create(model="via-alt-cli", src=[one])
    assert [batch.name for batch in gemini.batches.list(config={"page_size": 1})] == [other.name, made.name]
    gemini.batches.cancel(name=other.name)
    batch = ended(lambda: gemini.batches.get(name=made.name), lambda batch: batch.state.name in OVER)
    assert [line.response.text for line in batch.dest.inlined_responses] != [None, None]

    def deleted():
        try:
            return gemini.batches.delete(name=made.name)
        except errors.ClientError as error:
            assert "not billed yet" in str(error)
            return None

    ended(deleted, lambda done: done is not None)
    with pytest.raises(errors.ClientError, match="404"):
        gemini.batches.get(name=made.name)


def test_gemini_files_and_batches_of_files(gemini, tmp_path):
    request = {"contents": [{"parts": [{"text": "hello"}]}]}
    lines = [json.dumps({"key": f"r{at}", "request": request}) for at in range(3)]
    path = tmp_path / "requests.jsonl"
    path.write_text("\n".join(lines))
    file = gemini.files.upload(file=path, config={"display_name": "requests", "mime_type": "application/jsonl"})
    assert file.size_bytes == path.stat().st_size and file.display_name == "requests"
    assert gemini.files.get(name=file.name).name == file.name
    made = gemini.batches.create(model="via-alt-cli", src=file.name)
    batch = ended(lambda: gemini.batches.get(name=made.name), lambda batch: batch.state.name in OVER)

    def download():
        # The gateway knows the file once it has read the end of the batch itself.
        try:
            return gemini.files.download(file=batch.dest.file_name)
        except errors.ClientError as error:
            assert "404" in str(error)
            return None

    content = ended(download, lambda content: content is not None)
    assert [json.loads(line)["key"] for line in content.splitlines()] == ["r0", "r1", "r2"]
    assert {one.name for one in gemini.files.list()} == {file.name, batch.dest.file_name}
    gemini.files.delete(name=file.name)
    with pytest.raises(errors.ClientError, match="404"):
        gemini.files.get(name=file.name)


def test_gemini_files_of_several_pieces(gemini, tmp_path):
    # The SDK sends 8 MiB in one call.
    path = tmp_path / "large.bin"
    path.write_bytes(b"x" * (9 << 20))
    file = gemini.files.upload(file=path, config={"mime_type": "application/octet-stream"})
    assert file.size_bytes == 9 << 20
