/** The search parameters of this page. */
import { searchOf, text } from "@/parts/search";

export const loginSearch = searchOf({
  /** The page that was requested before the login. */
  from: text,
});
export type LoginSearch = ReturnType<typeof loginSearch>;
