import { expect, test } from "vitest";
import { type Entry, find } from "./palette-entries";

const entry = (kind: string, label: string, words?: string): Entry => ({
  id: `${kind}-${label}`,
  kind,
  label,
  words,
  icon: null,
  go: () => {},
});
const labels = (entries: Entry[], typed: string) => find(entries, typed).map(({ label }) => label);

test("what begins as typed comes first, then words of it, then what holds it; every word must fit", () => {
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

test("thousands of one kind do not crowd the others out, and no more than a dozen are shown", () => {
  const models = Array.from({ length: 3000 }, (_, index) => entry("Model", `claude-${index}`));
  const found = find([...models, entry("Price", "claude-0"), entry("Price", "claude-1")], "claude");
  expect(found).toHaveLength(12);
  expect(found.filter(({ kind }) => kind === "Price")).toHaveLength(2);
  expect(find(models, "")).toHaveLength(12);
});
