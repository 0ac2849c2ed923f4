/**
 * The decision chain in sections: considered and skipped providers with reasons, the order, the
 * attempts, and the end. The names of steps are those of the record (`decisionChain` of an entry).
 */
import type { Entry } from "./entry";

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

export interface Decisions {
  /** Providers that were skipped or removed, with the reason. */
  passedOver: Step[];
  /** The order of the candidates, the first one first. */
  candidates: Step[];
  /** The attempts in order, the last one with the reply. */
  attempts: Step[];
  /** All other steps: a refusal, or that no provider was left. */
  notes: Step[];
}

const CANDIDATES = new Set(["candidate", "chosen", "chosen_for_session"]);
const ATTEMPTS = new Set(["retried", "attempt_failed", "client_error", "succeeded", "hedge_lost"]);
const NOTES = new Set(["refused", "exhausted", "checked", "hedged"]);

const isStep = (value: unknown): value is Step =>
  typeof value === "object" && value !== null && typeof (value as Step).step === "string";

/** The steps that have a text. */
export const NAMED = [
  "other_group",
  "disabled",
  "model_not_supported",
  "format_not_convertible",
  "circuit_open",
  "cooldown",
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
  "checked",
  "hedged",
  "hedge_lost",
] as const;

/** Reads the chain. Unknown steps of a later version are listed with the skipped providers. */
export function decisionsOf(entry: Pick<Entry, "decisionChain">): Decisions {
  const found: Decisions = { passedOver: [], candidates: [], attempts: [], notes: [] };
  const chain = Array.isArray(entry.decisionChain) ? entry.decisionChain : [];
  for (const step of chain.filter(isStep)) {
    if (CANDIDATES.has(step.step)) found.candidates.push(step);
    else if (ATTEMPTS.has(step.step)) found.attempts.push(step);
    else if (NOTES.has(step.step)) found.notes.push(step);
    else found.passedOver.push(step);
  }
  return found;
}

/** The selection's fixed reasons: English in the record, translated in the catalogue. */
const REASONS = {
  "none of its groups is among the key's": "otherGroup",
  "disabled by an administrator": "disabled",
  "disabled by the gateway: its probes failed": "switchedOff",
  "the model is neither in its list nor redirected": "noModel",
  "the model has no price at it, and unpriced models are refused": "noPrice",
  "requests of this format cannot be converted to its own": "noFormat",
  "one of its spending limits is reached": "limit",
  "it serves as many sessions as it may": "sessionCap",
  "this session is already served by it": "session",
  "the only one that can serve this request": "only",
  "lowest priority number": "priority",
  "drawn by weight among its equals": "draw",
  "its priority number is higher": "nextPriority",
  "needs conversion, others of its priority do not": "nextFormat",
  "not drawn, stands in": "nextDraw",
  "stands in for the session's provider": "standsIn",
  "it failed the last request of this session": "failedLast",
  "its stored credential cannot be opened: enter it again": "noCredential",
  "another model that the request names is not in its list": "noNamedModel",
  "it does not allow a feature that the request uses": "noFeature",
  "this request costs least at it, of those of its priority": "cheapest",
  "the fastest of its priority": "fastest",
  "drawn by weight, to measure how fast it is": "explored",
  "this request costs more at it": "costsMore",
  "it took longer to the first byte, or was not measured yet": "isSlower",
  "each of its keys is disabled": "keysOff",
  "the windows of its account are used above its quota guard: others first": "nearlyUsedUp",
  "it serves a later model of those that the name stands for": "nextModel",
  "it serves the first of the models that the name stands for": "firstModel",
  "it takes the client's own credential, and the request has none beside the gateway's key":
    "noOwnCredential",
  "it would be asked again later, without the client's own credential": "ownCredentialLater",
} as const;
const TIMED = [
  [/^circuit open, tried again in (\d+) s$/, "circuitOpen"],
  [/^in its cooldown for another (\d+) s$/, "cooldown"],
  [/^each of its keys has a cooldown, the first for (\d+) s$/, "keysCool"],
] as const;

export interface Reason {
  name: (typeof REASONS)[keyof typeof REASONS] | (typeof TIMED)[number][1];
  seconds: string;
}

/** The text key of a step's reason; `undefined` if the reason is in a provider's words. */
export function reasonOf(detail: string): Reason | undefined {
  const name = (REASONS as Record<string, Reason["name"] | undefined>)[detail];
  if (name !== undefined) return { name, seconds: "" };
  for (const [pattern, timed] of TIMED) {
    const seconds = pattern.exec(detail)?.[1];
    if (seconds !== undefined) return { name: timed, seconds };
  }
  return undefined;
}
