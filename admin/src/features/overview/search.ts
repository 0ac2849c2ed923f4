/** The search parameters of this page. */
import { oneOf } from "@/parts/search";

export interface OverviewSearch {
  /** The last 24 hours unless it says otherwise. */
  range?: "hour" | "today" | "7days" | "30days" | "thisMonth";
  /** By user unless it says otherwise. */
  by?: "key" | "model" | "provider";
  /** Cost unless it says otherwise. */
  show?: "calls";
}

export const overviewSearch = (search: Record<string, unknown>): OverviewSearch => ({
  range: oneOf(search.range, ["hour", "today", "7days", "30days", "thisMonth"] as const),
  by: oneOf(search.by, ["key", "model", "provider"] as const),
  show: oneOf(search.show, ["calls"] as const),
});
