"""The official SDKs make batches, and read their results: anthropic and openai, with their files."""

import json
import time

import anthropic
import openai
import pytest

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
