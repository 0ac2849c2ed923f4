/** The search parameters of this page. */
import { searchOf, text } from "@/parts/search";

export const sessionsSearch = searchOf({
  q: text,
  session: text,
});
export type SessionsSearch = ReturnType<typeof sessionsSearch>;
