/** The search parameters of this page. */
import { number, oneOf, searchOf } from "@/parts/search";

export const providersSearch = searchOf({
  /** The one that is open. */
  id: number,
  /** The list unless it says otherwise. */
  view: oneOf(["flow"]),
});
export type ProvidersSearch = ReturnType<typeof providersSearch>;
