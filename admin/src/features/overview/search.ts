/** The search parameters of this page. */
import { oneOf, searchOf } from "@/parts/search";

export const overviewSearch = searchOf({
  /** The default is the last 24 hours. */
  range: oneOf(["hour", "today", "7days", "30days", "thisMonth"]),
  /** The default is by user. */
  by: oneOf(["key", "model", "provider"]),
  /** The default is cost. */
  show: oneOf(["calls"]),
});
export type OverviewSearch = ReturnType<typeof overviewSearch>;
