/**
 * The decision chain, told as a story: what was considered, who was passed over and why, who was chosen, every attempt, the end.
 * The steps' names are those of the record (`decisionChain` of an entry).
 */
import type { Entry } from "./values";

export interface Step {
  providerId: number | null;
  providerName: string;
  step: string;
  detail?: string;
  status?: number;
  /** Milliseconds since the request's start. */
  atMs: number;
  tookMs?: number;
}

export interface Story {
  /** Not candidates at all, or no longer: with the reason. */
  passedOver: Step[];
  /** The order of those that could serve it, the first one first. */
  candidates: Step[];
  /** What was tried, in order, the last one with the reply. */
  attempts: Step[];
  /** Whatever else was noted: a refusal, or that nobody was left. */
  notes: Step[];
}

const CANDIDATES = new Set(["candidate", "chosen", "chosen_for_session"]);
const ATTEMPTS = new Set(["retried", "attempt_failed", "client_error", "succeeded"]);
const NOTES = new Set(["refused", "exhausted"]);

const isStep = (value: unknown): value is Step =>
  typeof value === "object" && value !== null && typeof (value as Step).step === "string";

/** The steps that have words of their own. */
export const NAMED = [
  "other_group",
  "disabled",
  "model_not_supported",
  "format_not_convertible",
  "circuit_open",
  "resting",
  "limit_reached",
  "session_cap_reached",
  "candidate",
  "chosen",
  "chosen_for_session",
  "retried",
  "attempt_failed",
  "client_error",
  "succeeded",
  "refused",
  "exhausted",
] as const;

/** Reads the chain. Steps of a later version that this one does not know are told among those passed over. */
export function story(entry: Pick<Entry, "decisionChain">): Story {
  const told: Story = { passedOver: [], candidates: [], attempts: [], notes: [] };
  const chain = Array.isArray(entry.decisionChain) ? entry.decisionChain : [];
  for (const step of chain.filter(isStep)) {
    if (CANDIDATES.has(step.step)) told.candidates.push(step);
    else if (ATTEMPTS.has(step.step)) told.attempts.push(step);
    else if (NOTES.has(step.step)) told.notes.push(step);
    else told.passedOver.push(step);
  }
  return told;
}
