/** Reads what a provider says of a batch, in each form, and its results. Pure. */
import { type Fault, faultOf, textOf } from "./reply";

/** The endpoints that make batches. */
export const BATCHES = ["message_batch", "batch", "batch_generate_content"] as const;
export type BatchEndpoint = (typeof BATCHES)[number];

export interface Batch {
  id: string;
  /** The provider's own word. */
  state: string;
  ended: boolean;
  /** Files that have its results, of OpenAI's form: the replies, and the errors. */
  files: string[];
  /** Why the provider did not begin it. */
  fault?: Fault;
}

export interface Result {
  name: string;
  text: string;
  fault: Fault | undefined;
}

interface Described {
  id?: string;
  processing_status?: string;
  status?: string;
  output_file_id?: string | null;
  error_file_id?: string | null;
  errors?: { data?: { message?: string; code?: string }[] } | null;
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

interface LineResult {
  custom_id: string;
  response?: { status_code: number; body: object } | null;
  error?: object | null;
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

const linesOf = <T>(text: string) =>
  text
    .split("\n")
    .map((line) => parsed<T>(line))
    .filter((line) => line !== undefined);

/** The batch that a reply describes. */
export function batchOf(endpoint: BatchEndpoint, body: string): Batch | undefined {
  const said = parsed<Described>(body);
  if (endpoint === "message_batch") {
    if (said?.id === undefined) return undefined;
    const state = said.processing_status ?? "";
    return { id: said.id, state, ended: state === "ended", files: [] };
  }
  if (endpoint === "batch") {
    if (said?.id === undefined) return undefined;
    const { id, status: state = "", errors } = said;
    const files = [said.output_file_id, said.error_file_id].filter((file) => !!file) as string[];
    const ended = ["completed", "failed", "expired", "cancelled"].includes(state);
    const [first] = errors?.data ?? [];
    const fault = first && { message: first.message ?? state, kind: first.code ?? "" };
    return { id, state, ended, files, fault };
  }
  const id = said?.name?.split("/").pop();
  if (id === undefined) return undefined;
  const state = (said?.metadata?.state ?? "").replace(/^BATCH_STATE_/, "").toLowerCase();
  const ended =
    said?.done === true || ["succeeded", "failed", "cancelled", "expired"].includes(state);
  return { id, state, ended, files: [] };
}

/** The results: lines, or those in a description. */
export function resultsOf(endpoint: BatchEndpoint, body: string): Result[] {
  if (endpoint === "batch")
    return linesOf<LineResult>(body).map(({ custom_id, response, error }) => {
      const fault = faultOf((response?.body ?? { error }) as never);
      return { name: custom_id, text: response ? textOf(response.body as never) : "", fault };
    });
  if (endpoint === "message_batch")
    return linesOf<MessageResult>(body).map(({ custom_id, result }) => ({
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
