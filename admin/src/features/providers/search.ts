/** The search parameters of this page. */
import { number, oneOf } from "@/parts/search";

export interface ProvidersSearch {
  /** The one that is open. */
  id?: number;
  /** The list unless it says otherwise. */
  view?: "flow";
}

export const providersSearch = (search: Record<string, unknown>): ProvidersSearch => ({
  id: number(search.id),
  view: oneOf(search.view, ["flow"] as const),
});
