/** The pages of the log, read while scrolling, and the requests that end meanwhile. */
import { infiniteQueryOptions, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { call } from "@/api/client";
import { type Entry, tokensIn } from "@/parts/request/entry";
import { timed, useRequestList } from "@/parts/request-list";
import type { LogsSearch } from "./search";
import { filtersOf, fits, isError, isLimitRefusal } from "./values";

const PAGE = 50;

const pages = (search: LogsSearch) => {
  const filters = filtersOf(search);
  return infiniteQueryOptions({
    queryKey: ["logs", "pages", filters],
    queryFn: ({ pageParam, signal }) =>
      timed(
        call(
          "actions/usage-logs/getUsageLogs",
          { ...filters, pageSize: PAGE, ...(pageParam && { cursor: pageParam }) },
          signal,
        ),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor ?? undefined,
  });
};

export const statuses = queryOptions({
  queryKey: ["logs", "statuses"],
  queryFn: ({ signal }) => call("actions/usage-logs/getStatusCodeList", {}, signal),
  staleTime: 60_000,
});

export const detail = (requestId: string) =>
  queryOptions({
    queryKey: ["logs", "detail", requestId],
    queryFn: ({ signal }) => call("actions/usage-logs/getUsageLogDetail", { requestId }, signal),
    retry: 3,
    staleTime: 60_000,
  });

/** The list and its sums. While `paused`, it counts new entries (`waiting`); `show` adds them. */
export function useLogs(search: LogsSearch, paused: boolean) {
  // A paused list is not read again.
  const enabled = (one: { state: { data: unknown } }) => !paused || one.state.data === undefined;
  const query = useInfiniteQuery({ ...pages(search), enabled });
  const { rows, fresh, waiting, ...list } = useRequestList(
    query.data?.pages,
    useCallback((entry: Entry) => fits(entry, search), [search]),
    paused,
  );
  const show = () => {
    if (list.show()) void query.refetch();
  };
  const first = query.data?.pages[0];
  const summary = first && {
    requests: first.summary.requests + fresh.length,
    errors: first.summary.errors + fresh.filter(isError).length,
    limitRefusals: first.summary.limitRefusals + fresh.filter(isLimitRefusal).length,
    costUsd: fresh.reduce((sum, entry) => sum + (entry.costUsd ?? 0), first.summary.costUsd),
    inputTokens: fresh.reduce((sum, entry) => sum + tokensIn(entry), tokensIn(first.summary)),
    outputTokens: fresh.reduce(
      (sum, entry) => sum + entry.outputTokens,
      first.summary.outputTokens,
    ),
  };
  return { ...query, rows, summary, waiting, show };
}
