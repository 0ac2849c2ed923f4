import { describe, expect, test } from "vitest";
import { faultOf, pretty, Reply, textOf } from "./reply";

const sse = (events: object[]) =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

const STREAMS: Record<string, string> = {
  native: [
    'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"one "}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"two"}}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ].join(""),
  responses: sse([
    { type: "response.output_text.delta", delta: "one " },
    { type: "response.output_text.delta", delta: "two" },
    { type: "response.output_text.done", text: "one two" },
    {
      type: "response.completed",
      response: { output: [{ content: [{ type: "output_text", text: "one two" }] }] },
    },
  ]),
  "chat-compatible": `${sse([
    { choices: [{ delta: { role: "assistant", content: "one " } }] },
    { choices: [{ delta: { content: "two" } }] },
    { choices: [], usage: { total_tokens: 3 } },
  ])}data: [DONE]\n\n`,
  "alt-cli": sse([
    {
      candidates: [{ content: { parts: [{ text: "thinking", thought: true }, { text: "one " }] } }],
    },
    { candidates: [{ content: { parts: [{ text: "two" }] } }] },
  ]),
};

describe("a stream", () => {
  test("is the same text in every format, however it is cut", () => {
    for (const [format, stream] of Object.entries(STREAMS)) {
      for (const size of [1, 7, stream.length]) {
        const reply = new Reply(true);
        for (let from = 0; from < stream.length; from += size)
          reply.take(stream.slice(from, from + size), from);
        reply.end(9);
        expect(reply.text, `${format} in pieces of ${size}`).toBe("one two");
        expect(reply.body).toBe(stream);
        expect(reply.fault).toBeUndefined();
      }
    }
  });

  test("keeps its events with their names and times, and the last without an empty line", () => {
    const reply = new Reply(true);
    reply.take('event: a\ndata: {"x":1}\n\n: a comment\n\nevent: b\nda', 5);
    reply.take("ta: last", 8);
    reply.end(9);
    expect(reply.events).toEqual([
      { name: "a", data: '{"x":1}', atMs: 5 },
      { name: "b", data: "last", atMs: 9 },
    ]);
  });

  test("tells of the fault that ended it", () => {
    const reply = new Reply(true);
    reply.take(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"broken"}}\n\n',
      1,
    );
    expect(reply.fault).toEqual({ message: "broken", kind: "api_error" });
    const failed = {
      type: "response.failed",
      response: { error: { code: "server_error", message: "no" } },
    };
    expect(faultOf(failed)).toEqual({ message: "no", kind: "server_error" });
  });
});

describe("a reply in one piece", () => {
  test("is read in every format", () => {
    expect(
      textOf({
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: "a" },
        ],
      }),
    ).toBe("a");
    expect(
      textOf({
        output: [{ type: "reasoning" }, { content: [{ type: "output_text", text: "a" }] }],
      }),
    ).toBe("a");
    expect(textOf({ choices: [{ message: { content: "a" } }] })).toBe("a");
    expect(textOf({ candidates: [{ content: { parts: [{ text: "a" }] } }] })).toBe("a");
    expect(textOf({ choices: [{ message: { content: null } }] })).toBe("");
  });

  test("in the envelope of any format, a refusal is its message and its kind", () => {
    const said = "The daily limit of this key is used up.";
    const limit = { type: "rate_limit_error", message: said, limit_type: "key_daily" };
    expect(faultOf({ type: "error", error: limit })).toEqual({ message: said, kind: "key_daily" });
    expect(
      faultOf({ error: { code: 429, status: "RESOURCE_EXHAUSTED", message: said } })?.kind,
    ).toBe("RESOURCE_EXHAUSTED");
    expect(
      faultOf({ error: { message: said, type: "invalid_request_error", code: null } })?.kind,
    ).toBe("invalid_request_error");
    expect(faultOf({ content: [] })).toBeUndefined();
    const reply = new Reply(false);
    reply.take('{"error":{"mess', 1);
    reply.take('age":"no"}}', 2);
    expect(reply.fault).toBeUndefined();
    reply.end(3);
    expect(reply.fault?.message).toBe("no");
  });

  test("text that is not JSON is shown unchanged", () => {
    expect(pretty("<html>")).toBe("<html>");
    const reply = new Reply(false);
    reply.take("<html>", 1);
    reply.end(1);
    expect([reply.text, reply.fault]).toEqual(["", undefined]);
  });
});
