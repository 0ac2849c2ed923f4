import { describe, expect, test } from "vitest";
import { batchOf, isBatch, resultsOf } from "./batch";

describe("a batch of messages", () => {
  test("has an id, a state and an end", () => {
    const of = (status: string) =>
      batchOf("message_batch", JSON.stringify({ id: "b_1", processing_status: status }));
    expect(of("in_progress")).toEqual({ id: "b_1", state: "in_progress", ended: false, files: [] });
    expect(of("ended")).toEqual({ id: "b_1", state: "ended", ended: true, files: [] });
    expect(batchOf("message_batch", "{}")).toBeUndefined();
    expect(batchOf("message_batch", "<html>")).toBeUndefined();
  });

  test("has results in lines, with texts or reasons", () => {
    const message = { content: [{ type: "text", text: "hello" }] };
    const error = { type: "error", error: { type: "overloaded_error", message: "busy" } };
    const lines = [
      { custom_id: "a", result: { type: "succeeded", message } },
      { custom_id: "b", result: { type: "errored", error } },
      { custom_id: "c", result: { type: "expired" } },
    ];
    const body = `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
    expect(resultsOf("message_batch", body)).toEqual([
      { name: "a", text: "hello", fault: undefined },
      { name: "b", text: "", fault: { message: "busy", kind: "overloaded_error" } },
      { name: "c", text: "", fault: { message: "expired", kind: "" } },
    ]);
  });
});

describe("a batch of OpenAI's", () => {
  const of = (said: object) => batchOf("batch", JSON.stringify({ id: "batch_1", ...said }));

  test("has an id, a state, its files, and why it did not begin", () => {
    const running = { status: "in_progress", output_file_id: null, errors: null };
    expect(of(running)).toMatchObject({ id: "batch_1", state: "in_progress", ended: false });
    const done = { status: "completed", output_file_id: "file-1", error_file_id: "file-2" };
    expect(of(done)).toMatchObject({ ended: true, files: ["file-1", "file-2"], fault: undefined });
    const errors = { data: [{ code: "invalid_json_line", message: "line 1" }] };
    expect(of({ status: "failed", errors })).toMatchObject({
      ended: true,
      files: [],
      fault: { message: "line 1", kind: "invalid_json_line" },
    });
    expect(batchOf("batch", "{}")).toBeUndefined();
  });

  test("has results in lines, with texts or reasons", () => {
    const message = { role: "assistant", content: "hello" };
    const refused = { error: { message: "no such model", code: "model_not_found" } };
    const lines = [
      { custom_id: "a", response: { status_code: 200, body: { choices: [{ message }] } } },
      { custom_id: "b", response: { status_code: 404, body: refused } },
      { custom_id: "c", response: null, error: { message: "expired", code: "batch_expired" } },
    ];
    expect(resultsOf("batch", lines.map((line) => JSON.stringify(line)).join("\n"))).toEqual([
      { name: "a", text: "hello", fault: undefined },
      { name: "b", text: "", fault: { message: "no such model", kind: "model_not_found" } },
      { name: "c", text: "", fault: { message: "expired", kind: "batch_expired" } },
    ]);
  });
});

describe("a batch of Gemini's", () => {
  const candidate = { content: { parts: [{ text: "hello" }] } };
  const inlinedResponses = [
    { metadata: { key: "a" }, response: { candidates: [candidate] } },
    { error: { code: 8, message: "busy", status: "RESOURCE_EXHAUSTED" } },
  ];
  const body = JSON.stringify({
    name: "batches/b1",
    done: true,
    metadata: { state: "BATCH_STATE_SUCCEEDED" },
    response: { inlinedResponses: { inlinedResponses } },
  });

  test("has an id, a state and an end", () => {
    const of = (text: string) => batchOf("batch_generate_content", text);
    expect(of(body)).toEqual({ id: "b1", state: "succeeded", ended: true, files: [] });
    const running = { name: "batches/b2", metadata: { state: "BATCH_STATE_RUNNING" } };
    expect(of(JSON.stringify(running))).toEqual({
      id: "b2",
      state: "running",
      ended: false,
      files: [],
    });
    expect(of("{}")).toBeUndefined();
  });

  test("has its results within", () => {
    expect(resultsOf("batch_generate_content", body)).toEqual([
      { name: "a", text: "hello", fault: undefined },
      { name: "2", text: "", fault: { message: "busy", kind: "RESOURCE_EXHAUSTED" } },
    ]);
    expect(resultsOf("batch_generate_content", "{}")).toEqual([]);
  });
});

test("only the endpoints of batches make some", () => {
  expect(isBatch("message_batch")).toBe(true);
  expect(isBatch("embeddings")).toBe(false);
  expect(isBatch(undefined)).toBe(false);
});
