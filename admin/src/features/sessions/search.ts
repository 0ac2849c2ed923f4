/** The search parameters of this page. */
import { number, searchOf, text } from "@/parts/search";

export const sessionsSearch = searchOf({
  q: text,
  /** The open session, and its key: several keys can use the same session id. */
  session: text,
  key: number,
});
export type SessionsSearch = ReturnType<typeof sessionsSearch>;
