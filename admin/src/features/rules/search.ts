/** The search parameters of this page. */
import { number, oneOf, searchOf, text } from "@/parts/search";

export const rulesSearch = searchOf({
  /** Sensitive words unless it says otherwise. */
  view: oneOf(["errors"]),
  q: text,
  /** The one that is open. */
  id: number,
});
export type RulesSearch = ReturnType<typeof rulesSearch>;
