/** The search parameters of this page. */
import { number, oneOf, text } from "@/parts/search";

export interface RulesSearch {
  /** Sensitive words unless it says otherwise. */
  view?: "errors";
  q?: string;
  /** The one that is open. */
  id?: number;
}

export const rulesSearch = (search: Record<string, unknown>): RulesSearch => ({
  view: oneOf(search.view, ["errors"] as const),
  q: text(search.q),
  id: number(search.id),
});
