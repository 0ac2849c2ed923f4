/** The search parameters of this page. */
import { number, oneOf, text } from "@/parts/search";

export interface PlaygroundSearch {
  /** The id of the key that requests are sent as. */
  key?: number;
  /** `native` unless it says otherwise. */
  format?: "native" | "responses" | "chat-compatible" | "alt-cli";
  model?: string;
}

export const playgroundSearch = (search: Record<string, unknown>): PlaygroundSearch => ({
  key: number(search.key),
  format: oneOf(search.format, ["native", "responses", "chat-compatible", "alt-cli"] as const),
  model: text(search.model),
});
