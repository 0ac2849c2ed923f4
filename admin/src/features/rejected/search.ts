/** The search parameters of this page. */
import { text } from "@/parts/search";

export interface RejectedSearch {
  q?: string;
}

export const rejectedSearch = (search: Record<string, unknown>): RejectedSearch => ({ q: text(search.q) });
