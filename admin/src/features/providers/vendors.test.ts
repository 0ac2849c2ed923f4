import { expect, test } from "vitest";
import { TYPES } from "./values";
import { follow, proposed, VENDORS } from "./vendors";

test("a new provider is proposed the models of its family, and none of another's", () => {
  expect(proposed("native", "")).toEqual(["claude-*"]);
  expect(proposed("native", "https://llm.example.com/claude")).toEqual(["claude-*"]);
  expect(proposed("responses", "https://api.openai.com/v1")).toContain("gpt-*");
  expect(proposed("alt-cli", "nowhere")).toEqual(["gemini-*"]);
  // Many vendors have the chat format: only the address shows whose models they are.
  expect(proposed("chat-compatible", "https://llm.example.com")).toEqual([]);
  expect(proposed("chat-compatible", "https://api.deepseek.com/v1")).toEqual(["deepseek-*"]);
});

test("the proposal follows the format and the address until the user chooses the models", () => {
  expect(follow(["claude-*"], ["native", ""], ["alt-cli", ""])).toEqual(["gemini-*"]);
  expect(follow(["gpt-*", "mine"], ["responses", ""], ["native", ""])).toEqual(["gpt-*", "mine"]);
  expect(follow([], ["chat-compatible", ""], ["chat-compatible", "https://api.x.ai"])).toEqual([
    "grok-*",
  ]);
});

test("every vendor has an address and a known format", () => {
  for (const { id, url, type } of VENDORS) {
    expect(new URL(url).pathname, id).toMatch(
      /^\/(.*\/v\d|anthropic|converse|openai|v1\/projects\/.*)?$/,
    );
    expect(TYPES).toContain(type);
  }
  expect(new Set(VENDORS.map(({ id }) => id)).size).toBe(VENDORS.length);
});
