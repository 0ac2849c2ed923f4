import { expect, test } from "vitest";
import { type Entry, find, requestId } from "./palette-entries";

const entry = (kind: string, label: string, words?: string): Entry => ({
  id: `${kind}-${label}`,
  kind,
  label,
  words,
  icon: null,
  go: () => {},
});
const labels = (entries: Entry[], typed: string) => find(entries, typed).map(({ label }) => label);

test("matches at the start come first, then at a word, then inside; every word must match", () => {
  const all = [
    entry("User", "joan"),
    entry("Key", "bob / ann-cli"),
    entry("Provider", "annex"),
    entry("Session", "x", "ann"),
  ];
  expect(labels(all, "ann")).toEqual(["annex", "bob / ann-cli", "x"]);
  expect(labels(all, "ann key")).toEqual(["bob / ann-cli"]);
  expect(labels(all, "(")).toEqual([]);
});

test("thousands of one kind leave room for other kinds, and at most twelve are shown", () => {
  const models = Array.from({ length: 3000 }, (_, index) => entry("Model", `claude-${index}`));
  const found = find([...models, entry("Price", "claude-0"), entry("Price", "claude-1")], "claude");
  expect(found).toHaveLength(12);
  expect(found.filter(({ kind }) => kind === "Price")).toHaveLength(2);
  expect(find(models, "")).toHaveLength(12);
});

test("a request's id is known with hyphens and without, and nothing else is taken for one", () => {
  const id = "019aa51c-7a00-7000-8000-000000000001";
  expect([id, ` ${id.toUpperCase()} `, id.replaceAll("-", "")].map(requestId)).toEqual([
    id,
    id,
    id,
  ]);
  expect(["019aa51c", "claude-sonnet-4-5", `${id}0`, ""].map(requestId)).toEqual(
    Array(4).fill(undefined),
  );
});
