import { expect, test } from "vitest";
import { toCurl } from "./curl";

const entry = {
  clientFormat: "native",
  model: "claude-sonnet-4-5",
  endpoint: "/v1/messages",
  streamed: true,
};
const BASE = "http://gate:8080";

test("the key is a shell variable, and a body that is not stored becomes a small request", () => {
  const { text, own } = toCurl(entry, BASE, null);
  expect(own).toBe(false);
  expect(text).toContain('-H "authorization: Bearer $TOLLGATE_KEY"');
  expect(text).toMatch(/^curl -N http:\/\/gate:8080\/v1\/messages /);
  expect(text).toContain('"model":"claude-sonnet-4-5"');
  expect(text).toContain('"stream":true');
});

test("the stored request goes as it was, quoted for a shell", () => {
  const request = { model: "m", messages: [{ role: "user", content: "it's $HOME" }] };
  const { text, own } = toCurl({ ...entry, streamed: false }, BASE, {
    request,
    requestTruncated: false,
  });
  expect(own).toBe(true);
  expect(text).toContain(`it'\\''s $HOME`);
  expect(text).not.toContain("-N");
});

test("a request that was cut is not sent in half", () => {
  expect(toCurl(entry, BASE, { request: '{"model"', requestTruncated: true }).own).toBe(false);
  expect(toCurl(entry, BASE, { request: "no JSON", requestTruncated: false }).own).toBe(false);
});

test("a stream of the alt-cli format asks for events", () => {
  const alt = {
    ...entry,
    clientFormat: "alt-cli",
    endpoint: "/v1beta/models/g:streamGenerateContent",
    model: "g",
  };
  for (const stored of [null, { request: { contents: [] }, requestTruncated: false }])
    expect(toCurl(alt, BASE, stored).text).toContain(
      "/v1beta/models/g:streamGenerateContent?alt=sse'",
    );
});
