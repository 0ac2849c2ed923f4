/** The search parameters of this page. */
import { text } from "@/parts/search";

export interface SessionsSearch {
  q?: string;
  session?: string;
}

export const sessionsSearch = (search: Record<string, unknown>): SessionsSearch => ({
  q: text(search.q),
  session: text(search.session),
});
