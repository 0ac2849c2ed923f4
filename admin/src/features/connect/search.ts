/** The search parameters of this page. */
import { text } from "@/parts/search";

export interface ConnectSearch {
  /** The client that is shown. */
  client?: string;
}

export const connectSearch = (search: Record<string, unknown>): ConnectSearch => ({ client: text(search.client) });
