import { expect, test } from "vitest";
import { diff, kindOf } from "./diff";

test("each field is changed, the same, added or removed", () => {
  const before = { name: "a", limit: 5, gone: true, groups: ["x"], updatedAt: "then" };
  const after = { name: "a", limit: 7.5, groups: ["x", "y"], fresh: null, updatedAt: "now" };
  expect(diff(before, after)).toEqual([
    { path: "name", kind: "same", before: "a", after: "a" },
    { path: "limit", kind: "changed", before: "5", after: "7.5" },
    { path: "groups", kind: "changed", before: '["x"]', after: '["x","y"]' },
    { path: "fresh", kind: "added", after: "null" },
    { path: "gone", kind: "removed", before: "true" },
  ]);
});

test("records within records are looked into", () => {
  expect(diff({ data: { mode: "chat", input: 1 } }, { data: { mode: "chat", input: 2 } })).toEqual([
    { path: "data.mode", kind: "same", before: "chat", after: "chat" },
    { path: "data.input", kind: "changed", before: "1", after: "2" },
  ]);
  expect(diff({ map: {} }, { map: { a: "b" } })).toEqual([
    { path: "map.a", kind: "added", after: "b" },
    { path: "map", kind: "removed", before: "{}" },
  ]);
});

test("a created record has no before, a deleted one no after, and no record no lines", () => {
  expect(diff(null, { name: "a" })).toEqual([{ path: "name", kind: "added", after: "a" }]);
  expect(diff({ name: "a" }, null)).toEqual([{ path: "name", kind: "removed", before: "a" }]);
  expect(diff(null, null)).toEqual([]);
  expect(diff(undefined, undefined)).toEqual([]);
});

test("a text and a number with the same digits differ, and a text is shown without quotes", () => {
  expect(diff({ a: "x y" }, { a: null })).toEqual([
    { path: "a", kind: "changed", before: "x y", after: "null" },
  ]);
});

test("an entry is created, deleted or changed", () => {
  const kind = (action: string, before: unknown, after: unknown) =>
    kindOf({ action, before, after });
  expect(kind("keys.addKey", null, { id: 1 })).toBe("created");
  expect(kind("sensitive-words.createSensitiveWordAction", null, { id: 1 })).toBe("created");
  expect(kind("keys.removeKey", { id: 1 }, null)).toBe("deleted");
  expect(kind("model-prices.upsertModelPrice", { a: 1 }, { a: 2 })).toBe("changed");
  expect(kind("model-prices.uploadPriceTable", null, { total: 2 })).toBe("changed");
  expect(kind("system-config.runCleanup", null, null)).toBe("none");
});
