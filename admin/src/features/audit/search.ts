/** The search parameters of this page. */
import { number, searchOf, text } from "@/parts/search";

export const auditSearch = searchOf({
  actor: text,
  action: text,
  target: text,
  /** Days, `YYYY-MM-DD`. */
  start: text,
  end: text,
  id: number,
});
export type AuditSearch = ReturnType<typeof auditSearch>;
