/** Builds a request of each format from the form. Pure. */
import type { Format } from "@/api/client-settings";
import { type Endpoint, endpointBody, endpointPath, type SentFile, takesNoText } from "./endpoint";
import { faultOf, type Place } from "./json";

export interface Draft {
  format: Format;
  /** What is called instead of the format's replies. */
  endpoint?: Endpoint;
  file?: SentFile;
  model: string;
  stream: boolean;
  /** The body is edited as JSON. */
  raw: boolean;
  system: string;
  prompt: string;
  maxTokens: string;
  body: string;
}

/** Native requests must have a maximum of output tokens. */
const USUAL_MAX = 1024;

/** The body from the form's fields. */
export function simpleBody(draft: Draft): object {
  const { format, endpoint, model, stream, system, prompt, maxTokens } = draft;
  if (endpoint) return endpointBody(endpoint, draft);
  const max = Number(maxTokens) || undefined;
  const streamed = stream ? { stream } : {};
  switch (format) {
    case "native": {
      const messages = [{ role: "user", content: prompt }];
      return {
        model,
        max_tokens: max ?? USUAL_MAX,
        ...(system && { system }),
        messages,
        ...streamed,
      };
    }
    case "responses":
      return {
        model,
        ...(system && { instructions: system }),
        input: prompt,
        ...(max && { max_output_tokens: max }),
        ...streamed,
      };
    case "chat-compatible": {
      const first = system ? [{ role: "system", content: system }] : [];
      const messages = [...first, { role: "user", content: prompt }];
      return { model, messages, ...(max && { max_tokens: max }), ...streamed };
    }
    case "alt-cli":
      return {
        ...(system && { systemInstruction: { parts: [{ text: system }] } }),
        contents: [{ role: "user", parts: [{ text: prompt }] }],
        ...(max && { generationConfig: { maxOutputTokens: max } }),
      };
  }
}

/** A form as curl sends it. */
export interface SentForm {
  texts: [string, string][];
  /** Its field, and the name of the file. */
  file: [string, string];
}

/** The body that is sent. */
export const bodyOf = (draft: Draft) =>
  draft.raw ? draft.body : JSON.stringify(simpleBody(draft));

function membersOf(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>;
  } catch {
    // It cannot be sent either.
    return {};
  }
}

/** The fields of a form as they are sent, and its file as curl names one. */
export function formOf({ endpoint, file, ...draft }: Draft): SentForm {
  const fields = membersOf(bodyOf({ ...draft, endpoint }));
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const texts = Object.entries(fields)
    .filter(([, value]) => value !== null)
    .flatMap(([name, value]): [string, string][] =>
      Array.isArray(value) ? value.map((one) => [`${name}[]`, text(one)]) : [[name, text(value)]],
    );
  const name = endpoint?.feature === "audio" ? "file" : "image";
  return { texts, file: [name, file?.name ?? "FILE"] };
}

/** The path on the proxy. */
export function pathOf({ format, endpoint, model, stream }: Draft): string {
  if (endpoint) return endpointPath(endpoint, model);
  switch (format) {
    case "native":
      return "/v1/messages";
    case "responses":
      return "/v1/responses";
    case "chat-compatible":
      return "/v1/chat/completions";
    case "alt-cli": {
      const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      return `/v1beta/models/${encodeURIComponent(model)}:${method}`;
    }
  }
}

export interface Step {
  path: string;
  body: string;
  form?: SentForm;
}

/** The requests that the proxy gets: the administration makes two for a batch of a file. */
export function stepsOf(draft: Draft): Step[] {
  const one = { path: pathOf(draft), body: bodyOf(draft) };
  if (draft.endpoint?.isForm) return [{ ...one, form: formOf(draft) }];
  if (draft.endpoint?.name !== "batch") return [one];
  const { requests, ...rest } = membersOf(one.body);
  if (requests === undefined) return [one];
  const form: SentForm = { texts: [["purpose", "batch"]], file: ["file", "requests.jsonl"] };
  const body = JSON.stringify({ input_file_id: "FILE_ID", ...rest });
  return [
    { path: "/v1/files", body: "", form },
    { ...one, body },
  ];
}

/** The operation's input. */
export function toSend(draft: Draft, keyId: number) {
  const { endpoint, model, stream, file } = draft;
  const format = endpoint?.format ?? draft.format;
  return {
    keyId,
    format,
    body: bodyOf(draft),
    ...(endpoint && { endpoint: endpoint.name }),
    ...(endpoint?.isForm && file && { fileName: file.name, fileBase64: file.base64 }),
    ...(format === "alt-cli" && { model, stream }),
  };
}

export type Refused =
  | { what: "prompt" }
  | { what: "file" }
  | { what: "empty" }
  | { what: "object" }
  | { what: "json"; at: Place };

/** The reason why a draft cannot be sent. */
export function refused(draft: Draft): Refused | undefined {
  if (draft.endpoint?.isForm && !draft.file) return { what: "file" };
  if (!draft.raw) {
    const needsText = !draft.endpoint || !takesNoText(draft.endpoint);
    return needsText && draft.prompt.trim() === "" ? { what: "prompt" } : undefined;
  }
  if (draft.body.trim() === "") return { what: "empty" };
  const at = faultOf(draft.body);
  if (at) return { what: "json", at };
  const value: unknown = JSON.parse(draft.body);
  const object = typeof value === "object" && value !== null && !Array.isArray(value);
  return object ? undefined : { what: "object" };
}

/** Whether the request asks for a stream. */
export function isStreamed(draft: Draft): boolean {
  if (!draft.endpoint && (!draft.raw || draft.format === "alt-cli")) return draft.stream;
  if (!draft.raw) return false;
  try {
    return (JSON.parse(draft.body) as { stream?: unknown }).stream === true;
  } catch {
    return false;
  }
}
