/** The search parameters of this page. */
import { anyText, oneOf, searchOf, text } from "@/parts/search";

export const pricesSearch = searchOf({
  q: text,
  source: oneOf(["manual", "sync", "seed"]),
  /** The one that is open. */
  model: text,
  /** A new one's form is open, with this name. */
  add: anyText,
});
export type PricesSearch = ReturnType<typeof pricesSearch>;
