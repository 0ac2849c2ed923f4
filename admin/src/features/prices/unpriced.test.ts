import { expect, test } from "vitest";
import {
  hasMoneyLimit,
  isPriced,
  modelsByField,
  offeredUnpriced,
  usedWithoutEntry,
} from "./unpriced";

test("a model that is offered by name and has no price is listed, once and in order", () => {
  const priced = new Set(["priced", "upstream-priced"]);
  const provider = {
    isEnabled: true,
    allowedModels: ["priced", "z", "a", "claude-*"],
    modelRedirects: {},
  };
  const redirecting = {
    isEnabled: true,
    allowedModels: ["a"],
    modelRedirects: { alias: "upstream-priced", b: "c" },
  };
  const off = { isEnabled: false, allowedModels: ["off"], modelRedirects: {} };
  expect(offeredUnpriced(priced, [provider, redirecting, off])).toEqual(["a", "b", "z"]);
});

test("what was used is looked up under its own name", () => {
  expect(usedWithoutEntry(new Set(["a"]), ["b", "a", "aa"])).toEqual(["aa", "b"]);
});

test("a name with a date or -latest, or a Gemini name, is priced like the public list's name", () => {
  const priced = new Set(["claude-sonnet-4-5", "gpt-4o", "gemini/gemini-3"]);
  for (const model of [
    "gpt-4o",
    "gpt-4o-2024-08-06",
    "claude-sonnet-4-5-20250929",
    "claude-sonnet-4-5@20250929",
    "gpt-4o-latest",
    "gemini-3",
    "gemini-3-latest",
  ]) {
    expect(isPriced(priced, model), model).toBe(true);
  }
  for (const model of [
    "gpt-4o-mini",
    "gpt-4o-0806",
    "gpt-4o-2024-13-06",
    "openai/gpt-4o",
    "-latest",
  ]) {
    expect(isPriced(priced, model), model).toBe(false);
  }
});

test("a limit of money is found at a user and at a key", () => {
  expect(hasMoneyLimit({ keys: [{ limitDailyUsd: null }] })).toBe(false);
  expect(hasMoneyLimit({ limitTotalUsd: 0, keys: [] })).toBe(true);
  expect(hasMoneyLimit({ dailyQuota: null, keys: [{}, { limitWeeklyUsd: 5 }] })).toBe(true);
});

test("fields that are not applied are ordered by how many models have them", () => {
  const prices = [{ unapplied: ["b", "a"] }, { unapplied: [] }, { unapplied: ["a", "c"] }];
  expect(modelsByField(prices)).toEqual([
    { field: "a", models: 2 },
    { field: "b", models: 1 },
    { field: "c", models: 1 },
  ]);
});
