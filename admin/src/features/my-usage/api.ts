/**
 * The reads of this page: only the session's own key. `api/refresh.ts` reads them again after
 * events.
 */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { call } from "@/api/client";
import { nextLimitChange } from "@/api/next-limit-change";
import { timed } from "@/parts/request-list";

export const metadata = queryOptions({
  queryKey: ["my-usage", "metadata"],
  queryFn: ({ signal }) => call("actions/my-usage/getMyUsageMetadata", {}, signal),
});

export const quota = queryOptions({
  queryKey: ["my-usage", "quota"],
  queryFn: ({ signal }) => call("actions/my-usage/getMyQuota", {}, signal),
  refetchInterval: ({ state }) => nextLimitChange([state.data?.key, state.data?.user]),
});

export const today = queryOptions({
  queryKey: ["my-usage", "today"],
  queryFn: ({ signal }) => call("actions/my-usage/getMyTodayStats", {}, signal),
});

/** Since `days` days ago, today included. */
export const summary = (days: number) =>
  queryOptions({
    queryKey: ["my-usage", "summary", days],
    queryFn: ({ signal }) => {
      const startDate = new Date(Date.now() - days * 86_400_000).toISOString();
      return call("actions/my-usage/getMyStatsSummary", { startDate }, signal);
    },
    staleTime: 60_000,
  });

export const models = queryOptions({
  queryKey: ["my-usage", "models"],
  queryFn: ({ signal }) => call("actions/my-usage/getMyAvailableModels", {}, signal),
  staleTime: 60_000,
});

export const logs = infiniteQueryOptions({
  queryKey: ["my-usage", "logs"],
  queryFn: ({ pageParam, signal }) =>
    timed(
      call(
        "actions/my-usage/getMyUsageLogs",
        { pageSize: 50, ...(pageParam && { cursor: pageParam }) },
        signal,
      ),
    ),
  initialPageParam: "",
  getNextPageParam: (last) => last.nextCursor ?? undefined,
});
