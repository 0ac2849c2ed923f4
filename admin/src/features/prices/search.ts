/** The search parameters of this page. */
import { oneOf, text } from "@/parts/search";

export interface PricesSearch {
  q?: string;
  source?: "manual" | "sync" | "seed";
  /** The one that is open. */
  model?: string;
  /** A new one's form is open, with this name. */
  add?: string;
}

export const pricesSearch = (search: Record<string, unknown>): PricesSearch => ({
  q: text(search.q),
  source: oneOf(search.source, ["manual", "sync", "seed"] as const),
  model: text(search.model),
  add: typeof search.add === "string" ? search.add : undefined,
});
