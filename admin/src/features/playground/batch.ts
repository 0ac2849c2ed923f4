/** Reads what a provider says of a batch, in either form, and its results. Pure. */
import { type Fault, faultOf, textOf } from "./reply";

/** The endpoints whose body has the requests of a batch. */
export const BATCHES = ["message_batch", "batch_generate_content"] as const;
export type BatchEndpoint = (typeof BATCHES)[number];

export interface Batch {
  id: string;
  /** The provider's own word. */
  state: string;
  ended: boolean;
}

export interface Result {
  name: string;
  text: string;
  fault: Fault | undefined;
}

interface Described {
  id?: string;
  processing_status?: string;
  name?: string;
  done?: boolean;
  metadata?: { state?: string };
  response?: { inlinedResponses?: { inlinedResponses?: GoogleResult[] } };
}

interface GoogleResult {
  metadata?: { key?: string };
  response?: object;
  error?: object;
}

interface MessageResult {
  custom_id: string;
  result: { type: string; message?: object; error?: { error?: object } };
}

export const isBatch = (endpoint: string | undefined): endpoint is BatchEndpoint =>
  BATCHES.some((one) => one === endpoint);

function parsed<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

/** The batch that a reply describes. */
export function batchOf(endpoint: BatchEndpoint, body: string): Batch | undefined {
  const said = parsed<Described>(body);
  if (endpoint === "message_batch") {
    if (said?.id === undefined) return undefined;
    const state = said.processing_status ?? "";
    return { id: said.id, state, ended: state === "ended" };
  }
  const id = said?.name?.split("/").pop();
  if (id === undefined) return undefined;
  const state = (said?.metadata?.state ?? "").replace(/^BATCH_STATE_/, "").toLowerCase();
  const ended =
    said?.done === true || ["succeeded", "failed", "cancelled", "expired"].includes(state);
  return { id, state, ended };
}

/** The results: lines, or those in a description. */
export function resultsOf(endpoint: BatchEndpoint, body: string): Result[] {
  if (endpoint === "message_batch")
    return body
      .split("\n")
      .map((line) => parsed<MessageResult>(line))
      .filter((line) => line !== undefined)
      .map(({ custom_id, result }) => ({
        name: custom_id,
        text: result.message ? textOf(result.message as never) : "",
        fault: result.message
          ? undefined
          : (faultOf((result.error ?? {}) as never) ?? { message: result.type, kind: "" }),
      }));
  const all = parsed<Described>(body)?.response?.inlinedResponses?.inlinedResponses ?? [];
  return all.map(({ metadata, response, error }, at) => ({
    name: metadata?.key ?? String(at + 1),
    text: response ? textOf(response as never) : "",
    fault: faultOf({ error } as never),
  }));
}
