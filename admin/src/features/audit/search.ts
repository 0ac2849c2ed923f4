/** The search parameters of this page. */
import { number, text } from "@/parts/search";

export interface AuditSearch {
  actor?: string;
  action?: string;
  target?: string;
  /** Days, `YYYY-MM-DD`. */
  start?: string;
  end?: string;
  id?: number;
}

export const auditSearch = (search: Record<string, unknown>): AuditSearch => ({
  actor: text(search.actor),
  action: text(search.action),
  target: text(search.target),
  start: text(search.start),
  end: text(search.end),
  id: number(search.id),
});
