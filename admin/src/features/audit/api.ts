/** Reading the audit log, page by page. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { call, type Schemas } from "@/api/client";

export type Entry = Schemas["AuditRecord"];

export interface AuditFilters {
  actor?: string;
  action?: string;
  target?: string;
  startDate?: string;
  endDate?: string;
}

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
