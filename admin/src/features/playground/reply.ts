/** Reads a reply of each format while it arrives: its text, its events, and its error. Pure. */

export interface ReplyEvent {
  /** The name of a server-sent event, if it has one. */
  name: string;
  data: string;
  atMs: number;
}

export interface Fault {
  message: string;
  /** The machine-readable part of an error: a type, a code, a status. */
  kind: string;
}

/** The number of events that are kept for display. */
const MOST = 2_000;

type Json = { [key: string]: Json } | Json[] | string | number | boolean | null | undefined;
const at = (value: Json, key: string | number): Json =>
  typeof value === "object" && value !== null ? (value as { [key: string]: Json })[key] : undefined;
const list = (value: Json): Json[] => (Array.isArray(value) ? value : []);
const words = (value: Json): string => (typeof value === "string" ? value : "");

/** The text of a complete reply, or the text that one event of a stream adds, by format. */
export function textOf(event: Json): string {
  const type = words(at(event, "type"));
  if (type === "content_block_delta") return words(at(at(event, "delta"), "text"));
  if (type === "response.output_text.delta") return words(at(event, "delta"));
  // The events around the deltas repeat their content.
  if (type.startsWith("response.")) return "";
  // The last event of a transcription repeats its text.
  if (type.startsWith("transcript.")) return words(at(event, "delta"));
  const choice = at(at(event, "choices"), 0);
  const parts = [
    // A completion, and a transcription.
    words(at(choice, "text")),
    words(at(event, "text")),
    words(at(at(choice, "delta"), "content")),
    words(at(at(choice, "message"), "content")),
    ...list(at(event, "content")).map((block) => words(at(block, "text"))),
    ...list(at(event, "output")).flatMap((item) =>
      list(at(item, "content")).map((part) => words(at(part, "text"))),
    ),
    ...list(at(at(at(at(event, "candidates"), 0), "content"), "parts"))
      .filter((part) => at(part, "thought") !== true)
      .map((part) => words(at(part, "text"))),
  ];
  return parts.join("");
}

/** The images of a reply or of an event, as addresses. */
export function imagesOf(event: Json): string[] {
  const found = [
    ...list(at(event, "data")).flatMap((one) => [at(one, "b64_json"), at(one, "url")]),
    at(event, "b64_json"),
    ...list(at(event, "predictions")).map((one) => at(one, "bytesBase64Encoded")),
  ].map(words);
  return found
    .map((one) => (one === "" || one.includes(":") ? one : `data:image/png;base64,${one}`))
    .filter((one) => /^(https?:|data:image\/)/.test(one));
}

/** The error of a reply or of an event. */
export function faultOf(event: Json): Fault | undefined {
  const error = at(event, "error") ?? at(at(event, "response"), "error");
  const message = words(at(error, "message")) || words(error);
  if (message === "") return undefined;
  const kinds = [
    at(error, "limit_type"),
    at(error, "status"),
    at(error, "type"),
    at(error, "code"),
  ].map(words);
  return { message, kind: kinds.find((kind) => kind !== "") ?? "" };
}

export class Reply {
  /** The complete text that arrived. */
  body = "";
  text = "";
  /** Addresses of images. */
  images: string[] = [];
  /** A body that is not a text, in pieces of base64. */
  bytes: string[] = [];
  events: ReplyEvent[] = [];
  /** The number of events that were dropped. */
  dropped = 0;
  fault: Fault | undefined;
  private held = "";

  /** `streamed`: server-sent events. */
  constructor(private readonly streamed: boolean) {}

  /** Adds the next piece. */
  take(piece: string, atMs: number) {
    this.body += piece;
    if (!this.streamed) return;
    const blocks = (this.held + piece).split(/\r?\n\r?\n/);
    this.held = blocks.pop() ?? "";
    for (const block of blocks) this.event(block, atMs);
  }

  takeBytes(base64: string) {
    this.bytes.push(base64);
  }

  /** The reply has ended. */
  end(atMs: number) {
    if (this.streamed) {
      if (this.held.trim() !== "") this.event(this.held, atMs);
      this.held = "";
    } else {
      this.read(this.body);
    }
  }

  private event(block: string, atMs: number) {
    const lines = block.split(/\r?\n/);
    const field = (name: string) =>
      lines
        .filter((line) => line.startsWith(`${name}:`))
        .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
    const [name, data] = [field("event").join(""), field("data").join("\n")];
    if (name === "" && data === "") return;
    this.events.push({ name, data, atMs });
    if (this.events.length > MOST) {
      this.events.shift();
      this.dropped += 1;
    }
    this.read(data);
  }

  private read(text: string) {
    let json: Json;
    try {
      json = JSON.parse(text) as Json;
    } catch {
      return;
    }
    this.text += textOf(json);
    this.images.push(...imagesOf(json));
    this.fault ??= faultOf(json);
  }
}

/** JSON with indentation; any other text unchanged. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
