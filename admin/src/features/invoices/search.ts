/** The search parameters of this page. */
import { day, flag, number, searchOf } from "@/parts/search";

export const invoicesSearch = searchOf({
  from: day,
  to: day,
  provider: number,
  /** Lines without a difference, too. */
  all: flag,
});
export type InvoicesSearch = ReturnType<typeof invoicesSearch>;
