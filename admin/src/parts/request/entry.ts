/** Text keys and colours of a logged request: its outcome, its kinds of use and its tier. */
import type { Schemas } from "@/api/client";

export type Entry = Schemas["LogEntry"];

export const OUTCOMES = [
  "completed",
  "refused",
  "client_error",
  "upstream_failed",
  "broken_off",
  "client_aborted",
  "internal",
] as const;
/** The text key of an outcome. */
export const outcomeOf = (entry: Entry) =>
  OUTCOMES.find((one) => one === entry.outcome) ?? "internal";

export const KINDS = [
  "input",
  "image_input",
  "audio_input",
  "cache_write_5m",
  "cache_write_1h",
  "cache_read",
  "output",
  "image_output",
  "audio_output",
  "reasoning",
  "web_search",
  "request",
  "image_cache_read",
  "audio_cache_read",
  "code_interpreter",
  "file_search",
  "maps",
  "image",
  "second",
  "character",
  "query",
] as const;
/** The kinds whose rate is not per token. */
export const FEES: readonly string[] = [
  "web_search",
  "request",
  "code_interpreter",
  "file_search",
  "maps",
  "image",
  "second",
  "character",
  "query",
];
/** What the parts of a cost are that have a price of their own. */
export const PARTS = [
  "message",
  "fallback_message",
  "advisor_message",
  "compaction",
  "other_pass",
  "image_generation",
  "code_interpreter",
  "file_search",
  "web_search",
  "image_search",
  "maps",
  "code_execution",
  "web_fetch",
  "partner_search",
  "image",
  "second",
  "character",
  "query",
] as const;
/** The text key of a part. */
export const partOf = (name: string): (typeof PARTS)[number] =>
  PARTS.find((one) => one === name) ?? "other_pass";
export type Kind = (typeof KINDS)[number];
/** The text key of a kind of use. */
export const kindOf = (name: string): Kind => KINDS.find((one) => one === name) ?? "input";

export const TIERS = [
  "standard",
  "flex",
  "priority",
  "batch",
  "fast",
  "us",
  "fast_us",
  "ultrafast",
  "off_peak",
] as const;
/** The text key of a service tier. */
export const tierOf = (name: string): (typeof TIERS)[number] =>
  TIERS.find((one) => one === name) ?? "standard";

/** Why input was not read from a prompt cache. */
export const MISS_CAUSES = [
  "account",
  "model",
  "tools",
  "system",
  "message",
  "lifetime",
  "unexplained",
  "first_use",
  "unknown",
] as const;
/** The text key of a cause. */
export const causeOf = (name: string): (typeof MISS_CAUSES)[number] =>
  MISS_CAUSES.find((one) => one === name) ?? "unexplained";
/** Whether a cache had had the input. */
export const isLoss = (cause: string) => cause !== "first_use" && cause !== "unknown";

type TokensIn =
  | "inputTokens"
  | "cacheReadTokens"
  | "cacheCreation5mTokens"
  | "cacheCreation1hTokens";
/** Of one request, or of the sum of many. */
export const tokensIn = (used: Pick<Entry, TokensIn>) =>
  used.inputTokens + used.cacheReadTokens + used.cacheCreation5mTokens + used.cacheCreation1hTokens;

export type Tone = "good" | "warn" | "bad" | "off";

/** The colour of an entry's outcome; the word beside it has the same meaning. */
export function toneOf(entry: Entry): Tone {
  switch (entry.outcome) {
    case "completed":
      return "good";
    case "client_aborted":
      return "off";
    case "refused":
    case "client_error":
      return "warn";
    default:
      return "bad";
  }
}
