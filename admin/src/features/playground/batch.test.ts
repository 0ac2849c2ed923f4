import { describe, expect, test } from "vitest";
import { batchOf, isBatch, resultsOf } from "./batch";

describe("a batch of messages", () => {
  test("has an id, a state and an end", () => {
    const of = (status: string) =>
      batchOf("message_batch", JSON.stringify({ id: "b_1", processing_status: status }));
    expect(of("in_progress")).toEqual({ id: "b_1", state: "in_progress", ended: false });
    expect(of("ended")).toEqual({ id: "b_1", state: "ended", ended: true });
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
    expect(of(body)).toEqual({ id: "b1", state: "succeeded", ended: true });
    const running = { name: "batches/b2", metadata: { state: "BATCH_STATE_RUNNING" } };
    expect(of(JSON.stringify(running))).toEqual({ id: "b2", state: "running", ended: false });
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
