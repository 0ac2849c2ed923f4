import { describe, expect, test } from "vitest";
import type { Endpoint } from "./endpoint";
import { faultOf } from "./json";
import {
  bodyOf,
  type Draft,
  formOf,
  isStreamed,
  pathOf,
  refused,
  stepsOf,
  toSend,
} from "./request";

const draft = (changed: Partial<Draft> = {}): Draft => ({
  format: "native",
  model: "m/x",
  stream: true,
  raw: false,
  system: "be brief",
  prompt: "hello",
  maxTokens: "50",
  body: "",
  ...changed,
});
const made = (changed: Partial<Draft>) => JSON.parse(bodyOf(draft(changed)));

describe("the simple form", () => {
  test("says the same in every format", () => {
    expect(made({ format: "native" })).toEqual({
      model: "m/x",
      max_tokens: 50,
      system: "be brief",
      messages: [{ role: "user", content: "hello" }],
      stream: true,
    });
    expect(made({ format: "responses" })).toEqual({
      model: "m/x",
      instructions: "be brief",
      input: "hello",
      max_output_tokens: 50,
      stream: true,
    });
    expect(made({ format: "chat-compatible" })).toEqual({
      model: "m/x",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hello" },
      ],
      max_tokens: 50,
      stream: true,
    });
    expect(made({ format: "alt-cli" })).toEqual({
      systemInstruction: { parts: [{ text: "be brief" }] },
      contents: [{ role: "user", parts: [{ text: "hello" }] }],
      generationConfig: { maxOutputTokens: 50 },
    });
  });

  test("leaves out what was left empty, but the bound that native requests must have", () => {
    const empty = { system: "", maxTokens: "", stream: false };
    expect(made({ ...empty, format: "native" })).toEqual({
      model: "m/x",
      max_tokens: 1024,
      messages: [{ role: "user", content: "hello" }],
    });
    expect(Object.keys(made({ ...empty, format: "responses" }))).toEqual(["model", "input"]);
    expect(Object.keys(made({ ...empty, format: "alt-cli" }))).toEqual(["contents"]);
  });

  test("names model and streaming beside the body where the path has them", () => {
    expect(toSend(draft({ format: "alt-cli" }), 7)).toMatchObject({
      keyId: 7,
      model: "m/x",
      stream: true,
    });
    expect(toSend(draft(), 7)).not.toHaveProperty("model");
    expect(pathOf(draft({ format: "alt-cli" }))).toBe(
      "/v1beta/models/m%2Fx:streamGenerateContent?alt=sse",
    );
    expect(pathOf(draft({ format: "alt-cli", stream: false }))).toBe(
      "/v1beta/models/m%2Fx:generateContent",
    );
  });
});

describe("what cannot be sent", () => {
  const raw = (body: string) => refused(draft({ raw: true, body }));
  test("is told with its place", () => {
    expect(refused(draft({ prompt: " " }))).toEqual({ what: "prompt" });
    expect(raw(" ")).toEqual({ what: "empty" });
    expect(raw("[1]")).toEqual({ what: "object" });
    expect(raw('{"a": 1}')).toBeUndefined();
    expect(raw('{\n  "a": 1,\n}')).toEqual({ what: "json", at: { line: 3, column: 1 } });
  });

  test("the place is where JSON ends, whatever is wrong", () => {
    const cases: [string, number, number][] = [
      ["{", 1, 2],
      ['{"a" 1}', 1, 6],
      ['{"a": tru}', 1, 7],
      ['{"a": 1}\n}', 2, 1],
      ['{"a": "x\ny"}', 1, 7],
      ["{'a': 1}", 1, 2],
      ['{"a": [1, 2}', 1, 12],
      ['{"a": 01}', 1, 8],
    ];
    for (const [text, line, column] of cases) expect(faultOf(text), text).toEqual({ line, column });
    expect(
      faultOf('{"a": [1, -2.5e3, "\\u00e9", true, null, {}], "b": {"c": []}}'),
    ).toBeUndefined();
  });

  test("a body written by hand says itself whether it streams", () => {
    expect(isStreamed(draft({ raw: true, stream: false, body: '{"stream": true}' }))).toBe(true);
    expect(isStreamed(draft({ raw: true, stream: true, body: "{}" }))).toBe(false);
    expect(isStreamed(draft({ raw: true, stream: true, body: "{}", format: "alt-cli" }))).toBe(
      true,
    );
  });
});

describe("an endpoint", () => {
  const endpoint = (changed: Partial<Endpoint>): Endpoint => ({
    name: "embeddings",
    path: "/v1/embeddings",
    format: "chat-compatible",
    feature: "embeddings",
    isForm: false,
    doc: "",
    ...changed,
  });
  const sound = endpoint({
    name: "transcription",
    path: "/v1/audio",
    feature: "audio",
    isForm: true,
  });
  const file = { name: "a.wav", base64: "" };

  test("makes OpenAI's batch of a file, in two steps", () => {
    const batch = endpoint({ name: "batch", path: "/v1/batches", feature: "batches" });
    const [upload, made, ...more] = stepsOf(draft({ endpoint: batch, prompt: "one\n\ntwo" }));
    expect(more).toEqual([]);
    expect(upload).toMatchObject({ path: "/v1/files", form: { texts: [["purpose", "batch"]] } });
    expect(JSON.parse(made?.body ?? "")).toEqual({
      input_file_id: "FILE_ID",
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    const body = JSON.parse(bodyOf(draft({ endpoint: batch, prompt: "one\n\ntwo" })));
    expect(body.requests.map((one: { custom_id: string }) => one.custom_id)).toEqual([
      "request-1",
      "request-2",
    ]);
    const raw = { endpoint: batch, raw: true, body: '{"input_file_id": "file-1"}' };
    expect(stepsOf(draft(raw))).toEqual([{ path: "/v1/batches", body: raw.body }]);
  });

  test("has its own body, path and format", () => {
    const embeddings = draft({ endpoint: endpoint({}) });
    expect(JSON.parse(bodyOf(embeddings))).toEqual({ model: "m/x", input: "hello" });
    expect(toSend(embeddings, 7)).toEqual({
      keyId: 7,
      format: "chat-compatible",
      endpoint: "embeddings",
      body: bodyOf(embeddings),
    });
    expect(isStreamed(embeddings)).toBe(false);
    const rerank = draft({ endpoint: endpoint({ name: "rerank" }), prompt: "q\n\none\ntwo" });
    expect(JSON.parse(bodyOf(rerank))).toEqual({
      model: "m/x",
      query: "q",
      documents: ["one", "two"],
    });
    const action = endpoint({ name: "predict", path: "predict", format: "alt-cli" });
    expect(pathOf(draft({ endpoint: action }))).toBe("/v1beta/models/m%2Fx:predict");
  });

  test("that takes a form needs a file, and not always a text", () => {
    const empty = { endpoint: sound, prompt: "" };
    expect(refused(draft(empty))).toEqual({ what: "file" });
    expect(refused(draft({ ...empty, file }))).toBeUndefined();
    expect(toSend(draft({ ...empty, file }), 7)).toMatchObject({
      fileName: "a.wav",
      fileBase64: "",
    });
    expect(formOf(draft({ ...empty, file }))).toEqual({
      texts: [["model", "m/x"]],
      file: ["file", "a.wav"],
    });
    const raw = draft({ ...empty, file, raw: true, body: '{"a": ["b", 1], "c": null, "d": "@e"}' });
    expect(formOf(raw).texts).toEqual([
      ["a[]", "b"],
      ["a[]", "1"],
      ["d", "@e"],
    ]);
  });
});
