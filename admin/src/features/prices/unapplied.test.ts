import { expect, test } from "vitest";
import { modelsByField } from "./unapplied";

test("fields that are not applied are ordered by how many models have them", () => {
  const prices = [{ unapplied: ["b", "a"] }, { unapplied: [] }, { unapplied: ["a", "c"] }];
  expect(modelsByField(prices)).toEqual([
    { field: "a", models: 2 },
    { field: "b", models: 1 },
    { field: "c", models: 1 },
  ]);
});
