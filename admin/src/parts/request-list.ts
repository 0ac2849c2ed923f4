/**
 * The rows of a list of requests: the pages that were read, and the requests that ended since. Both
 * lists of requests (all, and the caller's own) use it.
 */
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { type Arrived, type LogEntry, longestDelay } from "@/api/live";
import { useLive } from "./live";

/** A page of the log, newest first. `readAt`: when its read began, in milliseconds since 1970. */
export interface RequestPage {
  logs: LogEntry[];
  nextCursor?: string | null;
  readAt: number;
}

/** The number of requests that end after a read and before the list is read again. */
const MANY = 500;

/** Reads a page, and adds the time at which the read began. */
export async function timed<T>(read: Promise<T>): Promise<T & { readAt: number }> {
  const readAt = Date.now();
  return { ...(await read), readAt };
}

/**
 * `rows`: newest first, each request once. `fresh`: those of them that the read does not have and
 * its sums do not count.
 */
export function merged(arrived: readonly Arrived[], pages: readonly RequestPage[]) {
  const read = pages.flatMap((page) => page.logs);
  const known = new Set(read.map((entry) => entry.requestId));
  const since = (pages[0]?.readAt ?? Number.NEGATIVE_INFINITY) - longestDelay;
  // An older one is on a page that was not read yet.
  const oldest = pages.at(-1)?.nextCursor ? (read.at(-1)?.createdAt ?? "") : "";
  const fresh = arrived
    .filter(({ receivedAt }) => receivedAt >= since)
    .map(({ entry }) => entry)
    .filter((entry) => entry.createdAt >= oldest && !known.has(entry.requestId));
  const newestFirst = (a: LogEntry, b: LogEntry) =>
    a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0;
  return { rows: fresh.length === 0 ? read : [...fresh, ...read].sort(newestFirst), fresh };
}

/**
 * The list. While it is `paused`, it stands still and counts what ends (`waiting`). `show` adds
 * those; it returns whether some of them were no longer kept, so that the list must be read again.
 */
export function useRequestList(
  pages: readonly RequestPage[] | undefined,
  fits: (entry: LogEntry) => boolean,
  paused = false,
) {
  const live = useLive();
  const arrived = useSyncExternalStore(live.subscribeLog, live.arrived);
  const [held, setHeld] = useState<readonly Arrived[]>();
  useEffect(() => setHeld(paused ? live.arrived() : undefined), [paused, live]);
  const shown = held ?? arrived;
  const list = useMemo(
    () =>
      merged(
        shown.filter(({ entry }) => fits(entry)),
        pages ?? [],
      ),
    [shown, pages, fits],
  );
  const last = held?.[0]?.number ?? 0;
  const waiting = held
    ? arrived.filter(({ number, entry }) => number > last && fits(entry)).length
    : 0;
  // The stream's requests are kept in a limited number.
  const readAt = pages?.[0]?.readAt;
  const many = !held && readAt !== undefined && (arrived[MANY]?.receivedAt ?? readAt) > readAt;
  useEffect(() => {
    if (many) live.readLog();
  }, [many, live]);
  const show = () => {
    setHeld(held && arrived);
    return (arrived.at(-1)?.number ?? 0) > last + 1;
  };
  return { ...list, waiting, show };
}
