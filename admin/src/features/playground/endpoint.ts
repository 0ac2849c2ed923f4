/** What the form sends to each endpoint beside the formats, and what it must have. Pure. */
import type { Schemas } from "@/api/client";

export type Endpoint = Schemas["EndpointRecord"];

/** A file of a form. */
export interface SentFile {
  name: string;
  base64: string;
}

/** The largest file, in bytes, as the administration takes it. */
export const LARGEST_FILE = 1 << 20;

interface Fields {
  model: string;
  prompt: string;
}

const content = (text: string) => ({ parts: [{ text }] });
/** The requests of a batch: one for each line. */
const lines = (prompt: string) => prompt.split("\n").filter((line) => line.trim() !== "");
const file = ({ model, prompt }: Fields) => ({ model, ...(prompt && { prompt }) });

/** Bodies that differ from `{model, input}`, by the endpoint's name. */
const BODIES: Record<string, (fields: Fields) => object> = {
  embed_content: ({ prompt }) => ({ content: content(prompt) }),
  batch_embed_contents: ({ model, prompt }) => ({
    requests: [{ model: `models/${model}`, content: content(prompt) }],
  }),
  // The first line is the question.
  rerank: ({ model, prompt }) => {
    const [query, ...documents] = lines(prompt);
    return { model, query, documents };
  },
  message_batch: ({ model, prompt }) => ({
    requests: lines(prompt).map((line, at) => ({
      custom_id: `request-${at + 1}`,
      params: { model, max_tokens: 1024, messages: [{ role: "user", content: line }] },
    })),
  }),
  // The administration makes a file of the requests, and a batch of the file.
  batch: ({ model, prompt }) => ({
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    requests: lines(prompt).map((line, at) => ({
      custom_id: `request-${at + 1}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: { model, messages: [{ role: "user", content: line }] },
    })),
  }),
  batch_generate_content: ({ prompt }) => {
    const requests = lines(prompt).map((line, at) => ({
      request: { contents: [{ role: "user", ...content(line) }] },
      metadata: { key: `request-${at + 1}` },
    }));
    return { batch: { displayName: "playground", inputConfig: { requests: { requests } } } };
  },
  completions: ({ model, prompt }) => ({ model, prompt }),
  image_generation: ({ model, prompt }) => ({ model, prompt }),
  image_edit: file,
  image_variation: ({ model }) => ({ model }),
  predict: ({ prompt }) => ({ instances: [{ prompt }] }),
  speech: ({ model, prompt }) => ({ model, input: prompt, voice: "alloy" }),
  transcription: file,
  translation: file,
};

/** A model that is asked for if none is typed. */
const MODELS: Record<string, string> = {
  embeddings: "text-embedding-3-small",
  embed_content: "gemini-embedding-001",
  batch_embed_contents: "gemini-embedding-001",
  rerank: "rerank-v3.5",
  moderations: "omni-moderation-latest",
  completions: "gpt-3.5-turbo-instruct",
  image_generation: "gpt-image-1",
  image_edit: "gpt-image-1",
  image_variation: "dall-e-2",
  predict: "imagen-4.0-generate-001",
  speech: "gpt-4o-mini-tts",
  transcription: "whisper-1",
  translation: "whisper-1",
};

/** The endpoint's example of a model; `usual` is that of its format. */
export const exampleOf = (endpoint: Endpoint | undefined, usual: string) =>
  (endpoint && MODELS[endpoint.name]) ?? usual;

/** The body from the form's fields. */
export const endpointBody = (endpoint: Endpoint, fields: Fields): object =>
  BODIES[endpoint.name]?.(fields) ?? { model: fields.model, input: fields.prompt };

/** Whether it can be called without a text. */
export const takesNoText = (endpoint: Endpoint) =>
  endpoint.isForm && endpoint.name !== "image_edit";

/** Its path for a model. */
export const endpointPath = ({ path }: Endpoint, model: string) =>
  path.startsWith("/") ? path : `/v1beta/models/${encodeURIComponent(model)}:${path}`;

/** A file's content as the operation takes it. */
export async function readFile(file: File): Promise<SentFile> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000)
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return { name: file.name, base64: btoa(pieces.join("")) };
}
