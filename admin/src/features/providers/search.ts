/** The search parameters of this page. */
import { number, oneOf, searchOf } from "@/parts/search";

export const providersSearch = searchOf({
  /** The open provider. */
  id: number,
  /** The default is the list. */
  view: oneOf(["flow"]),
});
export type ProvidersSearch = ReturnType<typeof providersSearch>;
