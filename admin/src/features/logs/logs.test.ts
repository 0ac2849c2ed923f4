import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import en from "@/i18n/en.json";
import { cell } from "@/parts/csv";
import { decisionsOf, reasonOf } from "@/parts/request/chain";
import type { Entry } from "@/parts/request/entry";
import { row } from "./csv";
import { errorShare, filtersOf, fits, isError, isLimitRefusal } from "./values";

const entry = (change: Partial<Entry>): Entry =>
  ({
    requestId: "a",
    model: "m",
    statusCode: 200,
    attempts: 1,
    outcome: "completed",
    ...change,
  }) as Entry;

describe("filters", () => {
  test("only what is set is asked for", () => {
    expect(filtersOf({})).toEqual({});
    expect(filtersOf({ model: "m", status: 429, failed: true, retries: 1 })).toEqual({
      model: "m",
      statusCode: 429,
      excludeStatusCode200: true,
      minRetryCount: 1,
    });
  });

  test("what comes live is held to the same filters", () => {
    expect(fits(entry({}), {})).toBe(true);
    expect(fits(entry({}), { to: "2026-01-01" })).toBe(false);
    expect(fits(entry({}), { failed: true })).toBe(false);
    expect(fits(entry({ attempts: 3 }), { retries: 2 })).toBe(true);
    expect(fits(entry({ userId: 1 }), { user: 2 })).toBe(false);
  });
});

describe("the decisions", () => {
  test("each step is shown where it belongs, unknown ones too", () => {
    const step = (name: string) => ({ providerId: 1, providerName: "p", step: name, atMs: 0 });
    const names = [
      "disabled",
      "chosen",
      "candidate",
      "attempt_failed",
      "succeeded",
      "exhausted",
      "from_the_future",
    ];
    const groups = decisionsOf({ decisionChain: names.map(step) });
    const steps = (part: { step: string }[]) => part.map((one) => one.step);
    expect(steps(groups.passedOver)).toEqual(["disabled", "from_the_future"]);
    expect(steps(groups.candidates)).toEqual(["chosen", "candidate"]);
    expect(steps(groups.attempts)).toEqual(["attempt_failed", "succeeded"]);
    expect(steps(groups.notes)).toEqual(["exhausted"]);
  });

  test("a value that is not a chain is read as an empty one", () => {
    expect(decisionsOf({ decisionChain: null }).attempts).toEqual([]);
    expect(decisionsOf({ decisionChain: ["x", null] }).passedOver).toEqual([]);
  });
});

test("refusals by limits are left out of the share of errors, of both its parts", () => {
  expect(errorShare({ requests: 10, errors: 6, limitRefusals: 5 })).toBe(0.2);
  expect(errorShare({ requests: 5, errors: 5, limitRefusals: 5 })).toBe(0);
  expect(errorShare({ requests: 0, errors: 0, limitRefusals: 0 })).toBe(0);
  const refused = entry({ outcome: "refused", statusCode: 429, providerId: null });
  expect([isError(refused), isLimitRefusal(refused)]).toEqual([true, true]);
  // A provider's own 429, and a refusal by something other than a limit.
  expect(isLimitRefusal({ ...refused, outcome: "upstream_failed", providerId: 1 })).toBe(false);
  expect(isLimitRefusal({ ...refused, statusCode: 403 })).toBe(false);
  expect(isError(entry({ outcome: "client_aborted" }))).toBe(false);
});

describe("the file", () => {
  test("quotes, line ends and formulas do no harm", () => {
    expect(cell('say "hi", please')).toBe('"say ""hi"", please"');
    expect(cell("=1+1")).toBe("'=1+1");
    expect([cell(null), cell(0), cell(false)]).toEqual(["", "0", "false"]);
    expect(row(entry({ errorMessage: "two\nlines" })).endsWith('"two\nlines"')).toBe(true);
  });
});

test("every reason that the gateway's selection gives is known here, in the same words", () => {
  const source = readFileSync("../crates/formats/src/policy/select/reasons.rs", "utf8");
  const reasons = [...source.matchAll(/^ {4}[A-Z_]+ = "([^"]+)";/gm)].map(([, text]) => text ?? "");
  expect(reasons.length).toBeGreaterThan(10);
  for (const text of reasons) {
    const reason = reasonOf(text);
    expect(reason && en.logs.chain.reasons[reason.name], text).toBe(text);
  }
  expect(reasonOf("circuit open, tried again in 30 s")).toEqual({
    name: "circuitOpen",
    seconds: "30",
  });
  expect(reasonOf("the provider said so")).toBeUndefined();
});
