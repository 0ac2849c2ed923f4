/**
 * The client of the gateway's API: calls operations, typed by the OpenAPI document, and throws one
 * kind of error.
 *
 * `call("actions/users/getUsers", {})` returns the envelope's data or throws an `ApiError` with the
 * gateway's message. Types come from `schema.d.ts`, which `npm run generate` makes from the
 * document on record. So a changed field is a compile error.
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

type PostPath = { [P in keyof paths]: paths[P] extends { post: object } ? P : never }[keyof paths];
/** The name of an operation: its path below `/api/`. */
export type Operation = PostPath extends infer P
  ? P extends `/api/${infer O}`
    ? O
    : never
  : never;
type Post<O extends Operation> = `/api/${O}` extends keyof paths
  ? paths[`/api/${O}`] extends { post: infer M }
    ? M
    : never
  : never;
type Json<T> = T extends { content: { "application/json": infer J } } ? J : never;
/** The body that an operation takes. */
export type BodyOf<O extends Operation> =
  Post<O> extends { requestBody?: infer R }
    ? NonNullable<R> extends infer N
      ? Json<N>
      : never
    : never;
/** The data that an operation returns. */
export type DataOf<O extends Operation> =
  Post<O> extends { responses: { 200: infer R } }
    ? Json<R> extends { data: infer D }
      ? D
      : undefined
    : never;

/** Translates a refusal; without a translation it keeps the gateway's message. Set by `i18n`. */
type Translate = (code: string, params: Record<string, unknown>, said: string) => string;
let translate: Translate = (_code, _params, said) => said;
export function translateFaults(by: Translate) {
  translate = by;
}

/** Translates a message within an answer by its reason. */
export function inTheirWords(
  said: string,
  reason: string,
  params: Record<string, unknown>,
): string {
  return translate("", { ...params, reason }, said);
}

/** A request that was refused or failed. `said`: the gateway's message; `message`: translated. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly params: Record<string, unknown>;

  constructor(status: number, code: string, said: string, params: Record<string, unknown> = {}) {
    super(said === "" ? "" : translate(code, params, said));
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.params = params;
  }

  /** The faulty field, if there is one. */
  get field(): string | undefined {
    return typeof this.params.field === "string" ? this.params.field : undefined;
  }

  /** The database cannot be reached; the request itself is not at fault. */
  get away(): boolean {
    return this.params.reason === "database_unreachable";
  }

  /** The message without the leading field name, to be shown at the field. */
  get atField(): string {
    const start = `${this.field}: `;
    return this.message.startsWith(start) ? this.message.slice(start.length) : this.message;
  }
}

/** Called when the gateway no longer accepts the session. Set by `parts/session.tsx`. */
let onLoggedOut: (() => void) | undefined;
export function whenLoggedOut(handler: () => void) {
  onLoggedOut = handler;
}

/** Called when a request was refused because the database cannot be reached. Set by `outage.ts`. */
let onDatabaseAway: ((error: ApiError) => void) | undefined;
export function whenDatabaseAway(handler: ((error: ApiError) => void) | undefined) {
  onDatabaseAway = handler;
}

interface Envelope {
  ok?: boolean;
  data?: unknown;
  error?: string;
  errorCode?: string;
  errorParams?: Record<string, unknown>;
}

function fault(status: number, answer: Envelope | undefined): ApiError {
  const message = answer?.error ?? (status === 0 ? "" : `HTTP ${status}`);
  const code = answer?.errorCode ?? (status === 0 ? "NETWORK" : "HTTP");
  if (status === 401) onLoggedOut?.();
  const error = new ApiError(status, code, message, answer?.errorParams ?? {});
  if (error.away) onDatabaseAway?.(error);
  return error;
}

const client = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "/" : location.origin,
  credentials: "same-origin",
});
type Loose = {
  POST: (
    path: string,
    init: object,
  ) => Promise<{ data?: Envelope; error?: Envelope; response: Response }>;
};

/** Runs an operation. */
export async function call<O extends Operation>(
  operation: O,
  body: BodyOf<O>,
  signal?: AbortSignal,
): Promise<DataOf<O>> {
  return callAny<DataOf<O>>(operation, body, signal);
}

/** Runs an operation that is not in the OpenAPI document (the UI's own routes below `ui/`). */
export async function callAny<T>(
  operation: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  let answer: Awaited<ReturnType<Loose["POST"]>>;
  try {
    answer = await (client as unknown as Loose).POST(`/api/${operation}`, {
      body: body ?? {},
      signal,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (error instanceof SyntaxError) throw fault(502, undefined);
    throw fault(0, undefined);
  }
  if (!answer.response.ok || answer.data?.ok !== true)
    throw fault(answer.response.status, answer.error ?? answer.data);
  return answer.data.data as T;
}

/** Runs an operation whose answer is one JSON object per line; yields each line as it arrives. */
export async function* callLines<T>(
  operation: string,
  body: unknown,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const answer = await within(() =>
    fetch(`/api/${operation}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      credentials: "same-origin",
      body: JSON.stringify(body),
      signal,
    }),
  );
  if (!answer.ok || answer.body === null) {
    const envelope = (await answer.json().catch(() => undefined)) as Envelope | undefined;
    throw fault(answer.status, envelope);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await within(() => reader.read());
    if (done) break;
    const lines = (held + value).split("\n");
    held = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line) as T;
  }
}

/** Reports a broken connection as a fault; an aborted request is not a fault. */
async function within<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw fault(0, undefined);
  }
}

type GetPath = { [P in keyof paths]: paths[P] extends { get: object } ? P : never }[keyof paths];
/** The name of a document: its path below `/api/`. */
type Document = GetPath extends infer P ? (P extends `/api/${infer O}` ? O : never) : never;
type ReadOf<O extends Document> = paths[`/api/${O}`] extends {
  get: { responses: { 200: infer R } };
}
  ? Json<R>
  : never;

/** Reads a document that is not in an envelope. */
export async function read<O extends Document>(
  document: O,
  signal?: AbortSignal,
): Promise<ReadOf<O>> {
  const get = client.GET as unknown as (
    path: string,
    init: object,
  ) => Promise<{ data?: unknown; response: Response }>;
  const { data, response } = await get(`/api/${document}`, { signal });
  if (!response.ok) throw fault(response.status, undefined);
  return data as ReadOf<O>;
}
