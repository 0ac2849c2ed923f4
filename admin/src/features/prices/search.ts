/** The search parameters of this page. */
import { anyText, oneOf, searchOf, text } from "@/parts/search";

export const pricesSearch = searchOf({
  q: text,
  source: oneOf(["manual", "sync", "seed"]),
  /** The open entry. */
  model: text,
  /** The form of a new entry is open, with this name. */
  add: anyText,
});
export type PricesSearch = ReturnType<typeof pricesSearch>;
