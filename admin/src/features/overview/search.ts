/** The search parameters of this page. */
import { oneOf, searchOf } from "@/parts/search";

export const overviewSearch = searchOf({
  /** The last 24 hours unless it says otherwise. */
  range: oneOf(["hour", "today", "7days", "30days", "thisMonth"]),
  /** By user unless it says otherwise. */
  by: oneOf(["key", "model", "provider"]),
  /** Cost unless it says otherwise. */
  show: oneOf(["calls"]),
});
export type OverviewSearch = ReturnType<typeof overviewSearch>;
