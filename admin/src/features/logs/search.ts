/** The search parameters of this page. */
import { flag, number, searchOf, text } from "@/parts/search";

export const logsSearch = searchOf({
  /** Days (`2026-11-21`) or ISO times. */
  from: text,
  to: text,
  model: text,
  status: number,
  /** Only entries without status 200. */
  failed: flag,
  user: number,
  key: number,
  provider: number,
  session: text,
  /** `x-tollgate-request-id`. */
  id: text,
  endpoint: text,
  retries: number,
  /** The open entry. */
  request: text,
});
export type LogsSearch = ReturnType<typeof logsSearch>;
