import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ages } from "./ages";
import { Moved } from "./moved";
import { keys } from "./queries";

type Session = Parameters<Moved["sessions"]>[0][number];
type Entry = Parameters<Moved["request"]>[0];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A cache that knows these, and which of them are to be read anew. */
function begin() {
  const cache = new QueryClient();
  const known = [
    keys.keyLimits(3),
    keys.keyLimits(4),
    keys.userLimits(1),
    ["my-usage", "quota"],
    ["my-usage", "today"],
  ];
  for (const key of known) cache.setQueryData(key, {});
  cache.setQueryData(keys.whoami, { userId: 1, keyId: 4 } as never);
  const stale = () => known.filter((key) => cache.getQueryState(key)?.isInvalidated).map((key) => key.join(" "));
  return { cache, moved: new Moved(cache), stale };
}
const session = (change: Partial<Session>): Session =>
  ({ sessionId: "s", userId: 1, keyId: 3, providerId: 2, requestCount: 1, concurrentCount: 1, ...change }) as Session;
const entry = (change: Partial<Entry>): Entry => ({ userId: 2, keyId: 9, providerId: 2, ...change }) as Entry;

test("a request that begins or ends renews the limits of those whose it is, once for many", () => {
  const { moved, stale } = begin();
  moved.request(entry({ userId: 1, keyId: 3 }));
  moved.request(entry({ userId: 1, keyId: 3 }));
  expect(stale()).toEqual([]);
  vi.advanceTimersByTime(500);
  expect(stale()).toEqual(["limits key 3", "limits user 1", "my-usage quota"]);
});

test("somebody else's request renews nothing of what is shown", () => {
  const { moved, stale } = begin();
  moved.request(entry({}));
  vi.advanceTimersByTime(60_000);
  expect(stale()).toEqual([]);
});

test("one's own request renews the sums of the day once it is in the database", () => {
  const { moved, stale } = begin();
  moved.request(entry({ userId: 1, keyId: 4 }));
  vi.advanceTimersByTime(1_000);
  expect(stale()).toEqual(["limits key 4", "limits user 1", "my-usage quota"]);
  vi.advanceTimersByTime(3_000);
  expect(stale()).toContain("my-usage today");
});

test("sessions tell of requests that run, and of sessions that end; the same list tells nothing", () => {
  const { cache, moved, stale } = begin();
  const settle = () => {
    vi.advanceTimersByTime(500);
    const found = stale();
    for (const key of [keys.keyLimits(3), keys.userLimits(1), ["my-usage", "quota"]]) cache.setQueryData(key, {});
    return found;
  };
  moved.sessions([session({})]);
  expect(settle()).toContain("limits key 3");
  moved.sessions([session({})]);
  expect(settle()).toEqual([]);
  moved.sessions([session({ concurrentCount: 0 })]);
  expect(settle()).toContain("limits key 3");
  moved.sessions([]);
  expect(settle()).toContain("limits key 3");
});

test("use is read anew when a window ends or something in a rolling one ages, and not before", () => {
  vi.setSystemTime(new Date("2026-11-21T12:00:00Z"));
  const cost = (current: number, resetAt: string | null = null) => ({ current, reserved: 0, limit: 1, resetAt });
  const usage = (change: object) =>
    ({
      cost5h: cost(0),
      costDaily: cost(0, "2026-11-21T12:00:30Z"),
      costWeekly: cost(0),
      costMonthly: cost(0),
      costTotal: cost(3),
      ...change,
    }) as unknown as Parameters<typeof ages>[0][number];
  expect(ages([undefined, usage({})])).toBe(false);
  expect(ages([usage({ costDaily: cost(1, "2026-11-21T12:00:30Z") })])).toBe(30_500);
  expect(ages([usage({ cost5h: cost(1, "2026-11-21T17:00:00Z") })])).toBe(300_000);
  expect(ages([usage({ rpm: { current: 2, limit: 9, window: "per_minute" } })])).toBe(15_000);
});
