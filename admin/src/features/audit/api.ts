/** Reading the audit log, page by page. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { call, type Schemas } from "@/api/client";

export type Entry = Schemas["AuditRecord"];

export interface AuditFilters {
  actor?: string;
  action?: string;
  target?: string;
  startDate?: string;
  endDate?: string;
}

/** One entry, or `null`. The cursor is the id after the page's first. */
export const auditEntry = (id: number) =>
  queryOptions({
    queryKey: ["audit", "entry", id] as const,
    queryFn: async ({ signal }) => {
      const ask = { cursor: id + 1, pageSize: 1 };
      const { entries } = await call("actions/audit/getAuditLog", ask, signal);
      return entries.find((entry) => entry.id === id) ?? null;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

export const auditLog = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: ["audit", filters] as const,
    queryFn: ({ pageParam, signal }) =>
      call(
        "actions/audit/getAuditLog",
        { ...filters, pageSize: 100, ...(pageParam === null ? {} : { cursor: pageParam }) },
        signal,
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.nextCursor,
  });
