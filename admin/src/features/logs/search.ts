/** The search parameters of this page. */
import { day, flag, number, searchOf, text } from "@/parts/search";

export const logsSearch = searchOf({
  from: day,
  to: day,
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
