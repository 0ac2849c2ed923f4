import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inWords } from "./faults";
import zh from "./faults.zh.json";

const root = join(__dirname, "../../..");

/** Every code that the gateway's own description names. */
function codes(): string[] {
  const found = new Set<string>();
  const walk = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      if (name === "x-error-codes") for (const code of inner as string[]) found.add(code);
      else walk(inner);
    }
  };
  walk(JSON.parse(readFileSync(join(root, "tests/admin/openapi.json"), "utf8")));
  return [...found];
}

/** The gateway's program, as one text. */
function source(folder: string): string {
  const texts = readdirSync(folder).map((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return source(path);
    return name.endsWith(".rs") ? readFileSync(path, "utf8") : "";
  });
  return texts.join("\n");
}

test("every code that the gateway documents has its words", () => {
  expect(codes().length).toBeGreaterThan(20);
  expect(codes().filter((code) => !(code in zh.codes))).toEqual([]);
});

test("the words that are translated are words that the gateway says", () => {
  const program = source(join(root, "src"));
  expect(Object.keys(zh.words).filter((words) => !program.includes(words))).toEqual([]);
});

test("by words, by code with parameters, and as it was said where neither is known", () => {
  const told = (code: string, said: string, params = {}) => inWords(zh, code, params, said);
  expect(told("UNAUTHORIZED", "the key has expired")).toBe("密钥已过期");
  expect(told("MAX_VALUE", "rpm: must be at most 9", { field: "rpm", max: 9 })).toBe("rpm: 不能大于 9");
  expect(told("INVALID_FORMAT", "url: is odd", { field: "url" })).toBe("url: 格式不正确：is odd");
  expect(told("SOMETHING_NEW", "quite new")).toBe("quite new");
  // A parameter that did not come is no reason to show a hole.
  expect(told("MIN_VALUE", "must be more")).toBe("must be more");
});
