/** The search parameters of this page. */
import { flag, number, text } from "@/parts/search";

export interface LogsSearch {
  /** Days (`2026-11-21`) or ISO times. */
  from?: string;
  to?: string;
  model?: string;
  status?: number;
  /** Only what was not answered with 200. */
  failed?: true;
  user?: number;
  key?: number;
  provider?: number;
  session?: string;
  /** `x-tollgate-request-id`. */
  id?: string;
  endpoint?: string;
  retries?: number;
  /** The one that is open. */
  request?: string;
}

export const logsSearch = (search: Record<string, unknown>): LogsSearch => ({
  from: text(search.from),
  to: text(search.to),
  model: text(search.model),
  status: number(search.status),
  failed: flag(search.failed),
  user: number(search.user),
  key: number(search.key),
  provider: number(search.provider),
  session: text(search.session),
  id: text(search.id),
  endpoint: text(search.endpoint),
  retries: number(search.retries),
  request: text(search.request),
});
