/** The search parameters of this page. */
import { day, number, searchOf, text } from "@/parts/search";

export const auditSearch = searchOf({
  actor: text,
  action: text,
  target: text,
  start: day,
  end: day,
  id: number,
});
export type AuditSearch = ReturnType<typeof auditSearch>;
