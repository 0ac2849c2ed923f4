/** The log's filter: in the address, as an API query, and as a test for live entries. */
import type { LogFilters } from "@/api/queries";
import type { Entry } from "@/parts/request/entry";
import type { LogsSearch } from "./search";

/** The API's filters. Absent ones are not sent. */
export function filtersOf(search: LogsSearch): LogFilters {
  return {
    ...(search.from !== undefined && { startDate: search.from }),
    ...(search.to !== undefined && { endDate: search.to }),
    ...(search.model !== undefined && { model: search.model }),
    ...(search.status !== undefined && { statusCode: search.status }),
    ...(search.user !== undefined && { userId: search.user }),
    ...(search.key !== undefined && { keyId: search.key }),
    ...(search.provider !== undefined && { providerId: search.provider }),
    ...(search.session !== undefined && { sessionId: search.session }),
    ...(search.id !== undefined && { requestId: search.id }),
    ...(search.endpoint !== undefined && { endpoint: search.endpoint }),
    ...(search.retries !== undefined && { minRetryCount: search.retries }),
    ...(search.failed && { excludeStatusCode200: true }),
  };
}

/** Whether a request that just ended belongs to the list. A list with an end time gets none. */
export function fits(entry: Entry, search: LogsSearch): boolean {
  return (
    search.to === undefined &&
    (search.model === undefined || entry.model === search.model) &&
    (search.status === undefined || entry.statusCode === search.status) &&
    (search.user === undefined || entry.userId === search.user) &&
    (search.key === undefined || entry.keyId === search.key) &&
    (search.provider === undefined || entry.providerId === search.provider) &&
    (search.session === undefined || entry.sessionId === search.session) &&
    (search.id === undefined || bare(entry.requestId) === bare(search.id)) &&
    (search.endpoint === undefined || entry.endpoint === search.endpoint) &&
    (search.retries === undefined || entry.attempts - 1 >= search.retries) &&
    (!search.failed || entry.statusCode !== 200)
  );
}

/** With hyphens or without: clients print both. */
const bare = (id: string) => id.replaceAll("-", "").toLowerCase();
/** Whether a request failed or was refused. */
export const isError = (entry: Pick<Entry, "outcome">) =>
  !["completed", "client_aborted"].includes(entry.outcome);

/** Whether a limit of a key or a user refused it, as the gateway counts it. */
export const isLimitRefusal = (entry: Pick<Entry, "outcome" | "providerId" | "statusCode">) =>
  entry.outcome === "refused" && entry.providerId == null && [402, 429].includes(entry.statusCode);

/** The share of errors. Refusals by limits are in neither number. */
export function errorShare(totals: {
  requests: number;
  errors: number;
  limitRefusals: number;
}): number {
  const asked = totals.requests - totals.limitRefusals;
  return asked > 0 ? Math.max(0, totals.errors - totals.limitRefusals) / asked : 0;
}
