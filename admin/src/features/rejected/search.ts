/** The search parameters of this page. */
import { searchOf, text } from "@/parts/search";

export const rejectedSearch = searchOf({
  q: text,
});
export type RejectedSearch = ReturnType<typeof rejectedSearch>;
