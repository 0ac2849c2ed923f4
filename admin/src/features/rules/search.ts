/** The search parameters of this page. */
import { number, oneOf, searchOf, text } from "@/parts/search";

export const rulesSearch = searchOf({
  /** The default is sensitive words. */
  view: oneOf(["errors"]),
  q: text,
  /** The open entry. */
  id: number,
});
export type RulesSearch = ReturnType<typeof rulesSearch>;
