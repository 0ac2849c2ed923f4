import { expect, test } from "vitest";
import en from "./en.json";
import zh from "./zh.json";

type Tree = { [key: string]: string | Tree };

/** Every text by its key; the plural forms of one text count as one. */
function texts(tree: Tree, path = ""): Map<string, string> {
  const all = new Map<string, string>();
  for (const [key, value] of Object.entries(tree)) {
    if (typeof value === "string") all.set(`${path}${key.replace(/_(one|other)$/, "")}`, value);
    else for (const [inner, text] of texts(value, `${path}${key}.`)) all.set(inner, text);
  }
  return all;
}

const placeholders = (text: string) => [...new Set(text.match(/{{\w+}}/g) ?? [])].sort();

test("both catalogues have the same texts", () => {
  expect([...texts(zh).keys()].sort()).toEqual([...texts(en).keys()].sort());
});

test("no text is empty, and both name the same values", () => {
  const chinese = texts(zh);
  for (const [key, text] of texts(en)) {
    expect(text.trim(), key).not.toBe("");
    expect(chinese.get(key)?.trim(), key).not.toBe("");
    // A count may be left out where the language says it otherwise ("one day").
    const without = (list: string[]) => list.filter((name) => name !== "{{count}}");
    expect(without(placeholders(chinese.get(key) ?? "")), key).toEqual(without(placeholders(text)));
  }
});
