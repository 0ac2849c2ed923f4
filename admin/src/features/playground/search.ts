/** The search parameters of this page. */
import { number, oneOf, searchOf, text } from "@/parts/search";

export const playgroundSearch = searchOf({
  /** The id of the key that requests are sent as. */
  key: number,
  /** The default is `native`. */
  format: oneOf(["native", "responses", "chat-compatible", "alt-cli"]),
  /** The name of an endpoint; the default is a reply in the format. */
  endpoint: text,
  model: text,
});
export type PlaygroundSearch = ReturnType<typeof playgroundSearch>;
