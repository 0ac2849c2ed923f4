import { expect, test } from "vitest";
import { offeredUnpriced, usedWithoutEntry } from "./unpriced";

test("a model that is offered by name and has no price is told, once and in order", () => {
  const priced = new Set(["priced", "upstream-priced"]);
  const provider = { isEnabled: true, allowedModels: ["priced", "z", "a", "claude-*"], modelRedirects: {} };
  const redirecting = { isEnabled: true, allowedModels: ["a"], modelRedirects: { alias: "upstream-priced", b: "c" } };
  const off = { isEnabled: false, allowedModels: ["off"], modelRedirects: {} };
  expect(offeredUnpriced(priced, [provider, redirecting, off])).toEqual(["a", "b", "z"]);
});

test("what was used is looked up under its own name", () => {
  expect(usedWithoutEntry(new Set(["a"]), ["b", "a", "aa"])).toEqual(["aa", "b"]);
});
