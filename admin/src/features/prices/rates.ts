/**
 * The rates of a price entry in USD per million tokens. All arithmetic is on decimal text, so the
 * shown and the saved values are exactly those of the entry.
 */

/** The rates that have a field. The gateway also charges by service tiers and other thresholds. */
export const RATES = [
  { name: "input", field: "input_cost_per_token", per: "million" },
  { name: "output", field: "output_cost_per_token", per: "million" },
  { name: "cacheRead", field: "cache_read_input_token_cost", per: "million" },
  { name: "cacheWrite5m", field: "cache_creation_input_token_cost", per: "million" },
  { name: "cacheWrite1h", field: "cache_creation_input_token_cost_above_1hr", per: "million" },
  { name: "request", field: "input_cost_per_request", per: "request" },
  { name: "imageInput", field: "input_cost_per_image_token", per: "million" },
  { name: "imageOutput", field: "output_cost_per_image_token", per: "million" },
  { name: "audioInput", field: "input_cost_per_audio_token", per: "million" },
  { name: "audioOutput", field: "output_cost_per_audio_token", per: "million" },
  { name: "reasoning", field: "output_cost_per_reasoning_token", per: "million" },
  { name: "longInput", field: "input_cost_per_token_above_200k_tokens", per: "million" },
  { name: "longOutput", field: "output_cost_per_token_above_200k_tokens", per: "million" },
  { name: "longCacheRead", field: "cache_read_input_token_cost_above_200k_tokens", per: "million" },
  {
    name: "longCacheWrite5m",
    field: "cache_creation_input_token_cost_above_200k_tokens",
    per: "million",
  },
  {
    name: "longCacheWrite1h",
    field: "cache_creation_input_token_cost_above_1hr_above_200k_tokens",
    per: "million",
  },
] as const;

export type Rate = (typeof RATES)[number];
export type RateName = Rate["name"];
export type Entry = Record<string, unknown>;

/** The usual rates; the others apply only to some models. */
export const USUAL: readonly RateName[] = [
  "input",
  "output",
  "cacheRead",
  "cacheWrite5m",
  "cacheWrite1h",
  "request",
];
const MILLION = 6;

/**
 * A decimal number as text with its point moved by `places`, exact; `null` if it is not a number.
 */
export function shift(text: string, places: number): string | null {
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?$/i.exec(text.trim());
  if (!parts) return null;
  const [, sign, whole = "", fraction = "", exponent = "0"] = parts;
  if (whole + fraction === "") return null;
  const digits = (whole + fraction).replace(/^0+/, "") || "0";
  if (digits === "0") return "0";
  const power = Number(exponent) - fraction.length + places;
  let plain: string;
  if (power >= 0) plain = digits + "0".repeat(power);
  else {
    const padded = digits.padStart(1 - power, "0");
    const after = padded.slice(power).replace(/0+$/, "");
    plain = padded.slice(0, power) + (after === "" ? "" : `.${after}`);
  }
  return sign === "-" ? `-${plain}` : plain;
}

const places = (rate: Rate) => (rate.per === "million" ? MILLION : 0);

/** A rate in USD per million tokens (or per request), as decimal text; `null` if it is not set. */
export function rateOf(entry: Entry, rate: Rate): string | null {
  const value = entry[rate.field];
  return typeof value === "number" || typeof value === "string"
    ? shift(String(value), places(rate))
    : null;
}

/** Typed text (USD per million, or per request) as the entry's number, or `undefined`. */
export function numberOf(typed: string, rate: Rate): number | undefined {
  const text = shift(typed, -places(rate));
  return text === null ? undefined : Number(text);
}

/** The entry with these rates; empty ones are removed. All other rates and fields stay. */
export function withRates(entry: Entry, typed: Partial<Record<RateName, string>>): Entry {
  const changed = { ...entry };
  for (const rate of RATES) {
    const text = typed[rate.name]?.trim();
    if (text === "") delete changed[rate.field];
    else if (text !== undefined && text !== rateOf(entry, rate))
      changed[rate.field] = numberOf(text, rate);
  }
  return changed;
}

export const byName = (name: RateName): Rate => RATES.find((rate) => rate.name === name) as Rate;

/** Fields that are charged by, but do not hold a single rate. */
export const SPECIAL: readonly string[] = [
  "search_context_cost_per_query",
  "provider_specific_entry",
];

/**
 * Rates without a field here: of service tiers and other thresholds, per million tokens; fees as
 * they are in the entry, whose field names say per what.
 */
export function tierRates(
  entry: Entry,
  unapplied: readonly string[],
): { field: string; value: string; perMillion: boolean }[] {
  const known = new Set<string>([...RATES.map((rate) => rate.field), ...SPECIAL, ...unapplied]);
  return Object.keys(entry).flatMap((field) => {
    const value = entry[field];
    if (
      known.has(field) ||
      !field.includes("cost") ||
      (typeof value !== "number" && typeof value !== "string")
    )
      return [];
    const perMillion = /_token(_|$)/.test(field);
    const rate = shift(String(value), perMillion ? MILLION : 0);
    return rate === null ? [] : [{ field, value: rate, perMillion }];
  });
}
