import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inWords } from "./faults";
import zh from "./faults.zh.json";

/** The gateway's own description. */
const document = JSON.parse(
  readFileSync(join(__dirname, "../../../tests/admin/openapi.json"), "utf8"),
);

/** Every code that it names. */
function codes(): string[] {
  const found = new Set<string>();
  const walk = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      if (name === "x-error-codes") for (const code of inner as string[]) found.add(code);
      else walk(inner);
    }
  };
  walk(document);
  return [...found];
}

/** Every reason that it names, with the gateway's English text. */
const reasons: Record<string, string> = document["x-reasons"];

const holes = (text: string, form: RegExp) =>
  [...text.matchAll(form)].map(([, name]) => name).sort();

test("every code that the gateway documents has its words", () => {
  expect(codes().length).toBeGreaterThan(20);
  expect(codes().filter((code) => !(code in zh.codes))).toEqual([]);
});

test("each documented reason has a text with the same parameters, and no other has one", () => {
  expect(Object.keys(reasons).length).toBeGreaterThan(90);
  expect(Object.keys(zh.reasons).sort()).toEqual(Object.keys(reasons).sort());
  for (const [reason, text] of Object.entries(zh.reasons)) {
    expect(text, reason).toMatch(/\p{Script=Han}/u);
    expect([reason, holes(text, /{{(\w+)}}/g)]).toEqual([
      reason,
      holes(reasons[reason] ?? "", /{(\w+)}/g),
    ]);
  }
});

test("no code shows the gateway's English words", () => {
  const english = Object.entries(zh.codes).filter(([, text]) => text.includes("{{said}}"));
  // No answer of the gateway: what stands there is a status.
  expect(english.map(([code]) => code)).toEqual(["HTTP"]);
});

test("a limit of another key than the one of the form is told with the key's name", () => {
  const limits = { keyLimit: "3", userLimit: "2" };
  const kinds = Object.keys(zh.codes).filter((code) => code.endsWith("_EXCEEDS_USER_LIMIT"));
  expect(kinds.length).toBe(6);
  for (const code of kinds) {
    const own = inWords(zh, code, limits, "the gateway's words");
    const named = inWords(zh, code, { ...limits, name: "cli" }, "the gateway's words");
    expect(own, code).not.toContain("“");
    expect(named, code).toBe(own.replace("密钥", "密钥“cli”"));
  }
});

test("by reason, by code with parameters, and as it was said where neither is known", () => {
  const told = (code: string, said: string, params = {}) => inWords(zh, code, params, said);
  expect(told("UNAUTHORIZED", "the key has expired", { reason: "key_expired" })).toBe("密钥已过期");
  expect(told("MAX_VALUE", "rpm: must be at most 9", { field: "rpm", max: 9 })).toBe(
    "rpm: 不能大于 9",
  );
  const odd = { field: "url", reason: "address_has_query" };
  expect(told("INVALID_FORMAT", "url: must not have a query or a fragment", odd)).toBe(
    "url: 不能带查询参数或片段",
  );
  // A reason of a newer gateway: by its code, and never in English.
  expect(told("INVALID_FORMAT", "url: is odd", { field: "url", reason: "quite_new" })).toBe(
    "url: 格式不正确",
  );
  expect(told("SOMETHING_NEW", "quite new")).toBe("quite new");
  // A missing parameter must not leave a gap in the text.
  expect(told("MIN_VALUE", "must be more")).toBe("must be more");
});
