import { describe, expect, test } from "vitest";
import { faultOf } from "./json";
import { bodyOf, type Draft, isStreamed, pathOf, refused, toSend } from "./request";

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
