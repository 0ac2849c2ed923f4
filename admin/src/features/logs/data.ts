/** The pages of the log, read while scrolling, and the requests that end meanwhile. */
import { infiniteQueryOptions, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { call } from "@/api/client";
import { merged, useLive, useLiveLog } from "@/parts/live";
import { type Entry, tokensIn } from "@/parts/request/entry";
import type { LogsSearch } from "./search";
import { filtersOf, fits, isError, isLimitRefusal } from "./values";

const PAGE = 50;
/** The number of requests that are kept while a list is paused. */
const MOST_WAITING = 500;

const pages = (search: LogsSearch) => {
  const filters = filtersOf(search);
  return infiniteQueryOptions({
    queryKey: ["logs", "pages", filters],
    queryFn: ({ pageParam, signal }) =>
      call(
        "actions/usage-logs/getUsageLogs",
        { ...filters, pageSize: PAGE, ...(pageParam && { cursor: pageParam }) },
        signal,
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

/** The list, newest first. While `paused`, it counts new entries (`waiting`); `show` adds them. */
export function useLogs(search: LogsSearch, paused: boolean) {
  // A paused list is not read again.
  const enabled = (one: { state: { data: unknown } }) => !paused || one.state.data === undefined;
  const query = useInfiniteQuery({ ...pages(search), enabled });
  const stream = useLive();
  // A request that has just ended may be missing in the data read so far.
  const justEnded = () => stream.recent().filter((entry) => fits(entry, search));
  const [live, setLive] = useState<Entry[]>(justEnded);
  const [waiting, setWaiting] = useState<Entry[]>([]);
  const standing = useRef(paused);
  standing.current = paused;
  const mark = JSON.stringify(filtersOf(search));
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter begins again
  useEffect(() => {
    setLive(justEnded());
    setWaiting([]);
  }, [mark]);
  const hear = useCallback(
    (entry: Entry) => {
      if (!fits(entry, search)) return;
      const add = standing.current ? setWaiting : setLive;
      add((old) => [entry, ...old].slice(0, MOST_WAITING));
    },
    [search],
  );
  useLiveLog(hear);
  const show = useCallback(() => {
    setLive((old) => [...waiting, ...old].slice(0, MOST_WAITING));
    setWaiting([]);
  }, [waiting]);
  useEffect(() => {
    if (!paused && waiting.length > 0) show();
  }, [paused, waiting, show]);
  const read = useMemo(() => query.data?.pages.flatMap((page) => page.logs) ?? [], [query.data]);
  const rows = useMemo(() => merged(live, read), [live, read]);
  const first = query.data?.pages[0];
  const fresh = rows.slice(0, rows.length - read.length);
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
  return { ...query, rows, summary, waiting: waiting.length, show };
}
