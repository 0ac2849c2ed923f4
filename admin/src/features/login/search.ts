/** The search parameters of this page. */
import { text } from "@/parts/search";

export interface LoginSearch {
  /** The page that was asked for before the login. */
  from?: string;
}

export const loginSearch = (search: Record<string, unknown>): LoginSearch => ({ from: text(search.from) });
