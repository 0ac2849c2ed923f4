import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Live, type LogEntry } from "./live";

/** A stream whose events the test sends. */
class Stream extends EventTarget {
  static last: Stream;
  static readonly OPEN = 1;
  readyState = Stream.OPEN;
  onerror?: () => void;
  constructor() {
    super();
    Stream.last = this;
  }
  close() {}
  send(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Stream);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function started() {
  const cache = new QueryClient();
  for (const key of ["users", "audit", "whoami"]) cache.setQueryData([key], []);
  cache.setQueryData(["logs", "pages", {}], []);
  const live = new Live(cache);
  live.start();
  const stale = (key: unknown[]) => cache.getQueryState(key)?.isInvalidated;
  return { cache, live, stale };
}

test("data from before the stream is read again when the stream begins or is back", () => {
  const { cache, live, stale } = started();
  expect(stale(["audit"])).toBe(false);
  Stream.last.send("hello", {});
  expect([stale(["users"]), stale(["audit"]), stale(["whoami"])]).toEqual([true, true, true]);
  // The log: when requests that ended before have had the time to get there.
  expect(stale(["logs", "pages", {}])).toBe(false);
  vi.advanceTimersByTime(2_000);
  expect(stale(["logs", "pages", {}])).toBe(true);

  cache.setQueryData(["audit"], []);
  Stream.last.onerror?.();
  expect(live.state().state).toBe("lost");
  vi.advanceTimersByTime(3_000);
  Stream.last.send("hello", {});
  expect(live.state().state).toBe("live");
  expect(stale(["audit"])).toBe(true);
});

test("the requests that ended are kept with the time of their arrival, newest first", () => {
  const { live } = started();
  const watcher = vi.fn();
  live.subscribeLog(watcher);
  for (const requestId of ["first", "second"]) Stream.last.send("log", { requestId } as LogEntry);
  expect(live.arrived().map(({ entry }) => entry.requestId)).toEqual(["second", "first"]);
  expect(live.arrived().map(({ number }) => number)).toEqual([2, 1]);
  expect(live.arrived()[0]?.receivedAt).toBe(Date.now());
  expect(watcher).toHaveBeenCalledTimes(2);
});

test("a list of more sessions than an event has is read", async () => {
  const { cache, stale } = started();
  const session = (sessionId: number) => ({ keyId: 1, sessionId, requestCount: 1 });
  const all = Array.from({ length: 300 }, (_, id) => session(id));
  cache.setQueryData(["sessions"], all);
  Stream.last.send("sessions", all.slice(0, 200));
  expect(cache.getQueryData(["sessions"])).toHaveLength(300);
  vi.advanceTimersByTime(3_000);
  expect(stale(["sessions"])).toBe(true);
  Stream.last.send("sessions", all.slice(0, 199));
  expect(cache.getQueryData(["sessions"])).toHaveLength(199);
});

test("a first reading that was under way when something changed is begun again", async () => {
  const { cache } = started();
  const answers: ((text: string) => void)[] = [];
  const options = {
    queryKey: ["audit", "pages"],
    queryFn: () => new Promise<string>((done) => answers.push(done)),
  };
  const watching = new QueryObserver(cache, options).subscribe(() => undefined);
  expect(answers).toHaveLength(1);
  Stream.last.send("configuration", {});
  await vi.advanceTimersByTimeAsync(10);
  expect(answers).toHaveLength(2);
  answers[0]?.("before the change");
  answers[1]?.("after the change");
  await vi.advanceTimersByTimeAsync(10);
  expect(cache.getQueryData(["audit", "pages"])).toBe("after the change");
  watching();
});

test("an answer from before an event does not take the event's place", async () => {
  const { cache } = started();
  const answers: ((data: unknown) => void)[] = [];
  const options = {
    queryKey: ["health"],
    queryFn: () => new Promise<unknown>((done) => answers.push(done)),
  };
  const watching = new QueryObserver(cache, options).subscribe(() => undefined);
  const closed = [{ providerId: 1, state: "CLOSED" }];
  answers[0]?.(closed);
  await vi.advanceTimersByTimeAsync(10);
  // A reading begins, is answered by the gateway, and its answer is on the way as the circuit
  // opens.
  void cache.invalidateQueries({ queryKey: ["health"] });
  Stream.last.send("breaker", { providerId: 1, state: "OPEN" });
  expect(cache.getQueryData(["health"])).toEqual([{ providerId: 1, state: "OPEN" }]);
  answers[1]?.(closed);
  await vi.advanceTimersByTimeAsync(10);
  expect(cache.getQueryData(["health"])).toEqual([{ providerId: 1, state: "OPEN" }]);
  // The others are read again.
  answers[2]?.([{ providerId: 1, state: "OPEN" }, { providerId: 2 }]);
  await vi.advanceTimersByTimeAsync(10);
  expect(cache.getQueryData(["health"])).toHaveLength(2);
  watching();
});

test("a first answer from before an event does not take the event's place", async () => {
  const { cache } = started();
  for (const [event, key] of [
    ["breaker", "health"],
    ["overview", "overview"],
    ["sessions", "sessions"],
  ] as const) {
    const answers: ((data: unknown) => void)[] = [];
    const options = {
      queryKey: [key],
      queryFn: () => new Promise<unknown>((done) => answers.push(done)),
    };
    const watching = new QueryObserver(cache, options).subscribe(() => undefined);
    const after = event === "overview" ? { todayRequests: 2 } : [{ providerId: 1, state: "OPEN" }];
    Stream.last.send(event, event === "breaker" ? (after as object[])[0] : after);
    await vi.advanceTimersByTimeAsync(10);
    answers[0]?.(event === "overview" ? { todayRequests: 1 } : []);
    answers[1]?.(after);
    await vi.advanceTimersByTimeAsync(10);
    expect(cache.getQueryData([key]), event).toEqual(after);
    watching();
  }
});
