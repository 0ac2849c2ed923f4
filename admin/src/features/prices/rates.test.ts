import { expect, test } from "vitest";
import {
  byName,
  numberOf,
  RATES,
  type RateName,
  rateOf,
  shift,
  tierRates,
  withRates,
} from "./rates";

test("the point moves without losing a digit", () => {
  const cases: [string, number, string | null][] = [
    ["0.000003", 6, "3"],
    ["3e-6", 6, "3"],
    ["3.75E-7", 6, "0.375"],
    ["0.00000012345678901", 6, "0.12345678901"],
    ["15", -6, "0.000015"],
    ["0.075", -6, "0.000000075"],
    ["1200000", -6, "1.2"],
    [".5", 0, "0.5"],
    ["0", 6, "0"],
    ["-2", -6, "-0.000002"],
    ["", 6, null],
    [".", 6, null],
    ["3 USD", 6, null],
    ["1,5", 6, null],
    ["Infinity", 6, null],
  ];
  for (const [text, places, expected] of cases)
    expect(shift(text, places), `${text} ${places}`).toBe(expected);
});

test("a rate reads the same from numbers and from text, and comes back as it was", () => {
  const input = byName("input");
  for (const value of [0.000003, "0.000003", "3e-6", 3e-6]) {
    expect(rateOf({ [input.field]: value }, input)).toBe("3");
  }
  expect(rateOf({}, input)).toBeNull();
  expect(rateOf({ [input.field]: null }, input)).toBeNull();
  for (const price of [2.5e-7, 1.1e-6, 0.1e-6, 7.5e-8, 0.00000125, 4.56e-5]) {
    expect(numberOf(rateOf({ [input.field]: price }, input) ?? "", input)).toBe(price);
  }
});

test("a fee per request is not multiplied", () => {
  const fee = byName("request");
  expect(rateOf({ [fee.field]: 0.02 }, fee)).toBe("0.02");
  expect(numberOf("0.02", fee)).toBe(0.02);
});

test("an edit changes its rates, takes out what was emptied and keeps every other field", () => {
  const entry = {
    mode: "chat",
    input_cost_per_token: 3e-6,
    cache_read_input_token_cost: 3e-7,
    extra: { deep: [1] },
  };
  const typed = Object.fromEntries(
    RATES.map((rate) => [rate.name, rateOf(entry, rate) ?? ""]),
  ) as Record<RateName, string>;
  expect(withRates(entry, typed)).toEqual(entry);
  expect(withRates(entry, { ...typed, input: "4.5", cacheRead: " " })).toEqual({
    mode: "chat",
    input_cost_per_token: 0.0000045,
    extra: { deep: [1] },
  });
  // Only the edited ones are there.
  expect(withRates(entry, { input: "4.5" })).toEqual({ ...entry, input_cost_per_token: 0.0000045 });
});

test("rates of tiers and thresholds are shown per million, except those not applied", () => {
  const entry = {
    mode: "chat",
    input_cost_per_token: 1e-6,
    input_cost_per_token_flex: 5e-7,
    input_cost_per_token_above_272k_tokens: "0.000002",
    output_cost_per_second: 0.1,
    code_interpreter_cost_per_session: 0.03,
    search_context_cost_per_query: { search_context_size_medium: 0.01 },
  };
  expect(tierRates(entry, ["output_cost_per_second"])).toEqual([
    { field: "input_cost_per_token_flex", value: "0.5", perMillion: true },
    { field: "input_cost_per_token_above_272k_tokens", value: "2", perMillion: true },
    { field: "code_interpreter_cost_per_session", value: "0.03", perMillion: false },
  ]);
  expect(tierRates({ search_context_cost_per_query: 0.01 }, [])).toEqual([]);
});
