import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { nextLimitChange } from "./next-limit-change";
import { keys } from "./queries";
import { Refresh } from "./refresh";

type Session = Parameters<Refresh["sessions"]>[0][number];
type Entry = Parameters<Refresh["request"]>[0];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A cache with these queries. `stale` lists the invalidated ones. */
function setUp() {
  const cache = new QueryClient();
  const queries = [
    keys.keyLimits(3),
    keys.keyLimits(4),
    keys.userLimits(1),
    ["my-usage", "quota"],
    ["my-usage", "today"],
  ];
  for (const key of queries) cache.setQueryData(key, {});
  cache.setQueryData(keys.whoami, { userId: 1, keyId: 4 } as never);
  const stale = () =>
    queries.filter((key) => cache.getQueryState(key)?.isInvalidated).map((key) => key.join(" "));
  return { cache, refresh: new Refresh(cache), stale };
}
const session = (change: Partial<Session>): Session =>
  ({
    sessionId: "s",
    userId: 1,
    keyId: 3,
    providerId: 2,
    requestCount: 1,
    concurrentCount: 1,
    ...change,
  }) as Session;
const entry = (change: Partial<Entry>): Entry =>
  ({ userId: 2, keyId: 9, providerId: 2, ...change }) as Entry;

test("ended requests refresh the limits of their user and key, once for several requests", () => {
  const { refresh, stale } = setUp();
  refresh.request(entry({ userId: 1, keyId: 3 }));
  refresh.request(entry({ userId: 1, keyId: 3 }));
  expect(stale()).toEqual([]);
  vi.advanceTimersByTime(500);
  expect(stale()).toEqual(["limits key 3", "limits user 1", "my-usage quota"]);
});

test("a request of another user refreshes none of the cached queries", () => {
  const { refresh, stale } = setUp();
  refresh.request(entry({}));
  vi.advanceTimersByTime(60_000);
  expect(stale()).toEqual([]);
});

test("a request with the session's own key refreshes the day's sums after a delay", () => {
  const { refresh, stale } = setUp();
  refresh.request(entry({ userId: 1, keyId: 4 }));
  vi.advanceTimersByTime(1_000);
  expect(stale()).toEqual(["limits key 4", "limits user 1", "my-usage quota"]);
  vi.advanceTimersByTime(3_000);
  expect(stale()).toContain("my-usage today");
});

test("changed and ended sessions refresh the limits of their key; others refresh nothing", () => {
  const { cache, refresh, stale } = setUp();
  const settle = () => {
    vi.advanceTimersByTime(500);
    const found = stale();
    for (const key of [keys.keyLimits(3), keys.userLimits(1), ["my-usage", "quota"]])
      cache.setQueryData(key, {});
    return found;
  };
  refresh.sessions([session({})]);
  expect(settle()).toContain("limits key 3");
  refresh.sessions([session({})]);
  expect(settle()).toEqual([]);
  refresh.sessions([session({ concurrentCount: 0 })]);
  expect(settle()).toContain("limits key 3");
  refresh.sessions([]);
  expect(settle()).toContain("limits key 3");
});

test("the next change is due when a window ends or moves, and never if all are empty", () => {
  vi.setSystemTime(new Date("2026-11-21T12:00:00Z"));
  const cost = (current: number, resetAt: string | null = null) => ({
    current,
    reserved: 0,
    limit: 1,
    resetAt,
  });
  const usage = (change: object) =>
    ({
      cost5h: cost(0),
      costDaily: cost(0, "2026-11-21T12:00:30Z"),
      costWeekly: cost(0),
      costMonthly: cost(0),
      costTotal: cost(3),
      ...change,
    }) as unknown as Parameters<typeof nextLimitChange>[0][number];
  expect(nextLimitChange([undefined, usage({})])).toBe(false);
  expect(nextLimitChange([usage({ costDaily: cost(1, "2026-11-21T12:00:30Z") })])).toBe(30_500);
  expect(nextLimitChange([usage({ cost5h: cost(1, "2026-11-21T17:00:00Z") })])).toBe(300_000);
  expect(nextLimitChange([usage({ rpm: { current: 2, limit: 9, window: "per_minute" } })])).toBe(
    15_000,
  );
});
