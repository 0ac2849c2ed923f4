import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Stream } from "./stream";
import { type FromHub, Hub, type LiveState } from "./stream-hub";

/** A connection whose events the test sends. */
class Source extends EventTarget {
  static all: Source[] = [];
  static readonly OPEN = 1;
  static open = () => Source.all.filter((one) => one.readyState === Source.OPEN);
  readyState = Source.OPEN;
  onerror?: () => void;
  constructor() {
    super();
    Source.all.push(this);
  }
  close() {
    this.readyState = 2;
  }
  send(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

beforeEach(() => {
  Source.all = [];
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Source);
});
afterEach(() => {
  see("visible");
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A page that records what it receives. */
function page() {
  const received: FromHub[] = [];
  return { received, postMessage: (message: FromHub) => received.push(message) };
}
function see(state: "visible" | "hidden") {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}

test("eight pages share one connection, and one that comes later receives the state", () => {
  const hub = new Hub();
  const pages = Array.from({ length: 7 }, page);
  for (const one of pages) hub.take(one, "join");
  expect(Source.open()).toHaveLength(1);
  Source.open()[0]?.send("hello", {});
  Source.open()[0]?.send("overview", { todayRequests: 1 });
  Source.open()[0]?.send("overview", { todayRequests: 2 });
  Source.open()[0]?.send("log", { requestId: "past" });
  const late = page();
  hub.take(late, "join");
  expect(late.received).toEqual([
    { kind: "state", state: { state: "live" } },
    { kind: "event", name: "hello", data: "{}" },
    { kind: "event", name: "overview", data: '{"todayRequests":2}' },
  ]);
  Source.open()[0]?.send("log", { requestId: "new" });
  for (const one of [...pages, late])
    expect(one.received.at(-1)).toMatchObject({ name: "log", data: '{"requestId":"new"}' });
  expect(Source.all).toHaveLength(1);
});

test("the connection is closed with the last page, also when pages end without a word", () => {
  const hub = new Hub();
  const [one, other] = [page(), page()];
  hub.take(one, "join");
  hub.take(other, "join");
  hub.take(one, "leave");
  expect(Source.open()).toHaveLength(1);
  hub.take(other, "leave");
  expect(Source.open()).toHaveLength(0);
  hub.take(one, "join");
  expect(Source.open()).toHaveLength(1);
  vi.advanceTimersByTime(180_000);
  expect(Source.open()).toHaveLength(0);
});

test("a connection that fails is opened again, and every page hears of both", () => {
  const hub = new Hub();
  const one = page();
  hub.take(one, "join");
  Source.open()[0]?.send("hello", {});
  Source.open()[0]?.onerror?.();
  expect(one.received.at(-1)).toMatchObject({ state: { state: "lost" } });
  // A page that asks meanwhile does not make it try sooner.
  hub.take(page(), "join");
  expect(Source.open()).toHaveLength(0);
  vi.advanceTimersByTime(3_000);
  Source.open()[0]?.send("hello", {});
  expect(one.received.slice(-2)).toMatchObject([{ state: { state: "live" } }, { name: "hello" }]);
});

test("a page leaves on pagehide or after a minute in the background, and rejoins when visible", () => {
  const states: LiveState["state"][] = [];
  const stream = new Stream("admin", { state: ({ state }) => states.push(state), event: () => {} });
  stream.start();
  const isOpen = () => Source.open().length === 1;
  expect(isOpen()).toBe(true);
  dispatchEvent(new Event("pagehide"));
  expect(isOpen()).toBe(false);
  // Out of the back/forward cache.
  dispatchEvent(new Event("pageshow"));
  expect(isOpen()).toBe(true);
  see("hidden");
  vi.advanceTimersByTime(50_000);
  see("visible");
  vi.advanceTimersByTime(50_000);
  expect(isOpen()).toBe(true);
  see("hidden");
  vi.advanceTimersByTime(61_000);
  expect(isOpen()).toBe(false);
  see("visible");
  expect(isOpen()).toBe(true);
  Source.open()[0]?.send("hello", {});
  expect(states.at(-1)).toBe("live");
  stream.stop();
  expect(isOpen()).toBe(false);
  dispatchEvent(new Event("pageshow"));
  expect(isOpen()).toBe(false);
});

test("a worker that does not answer is done without", () => {
  vi.stubGlobal(
    "SharedWorker",
    class {
      port = { postMessage: () => {} };
    },
  );
  const stream = new Stream("admin", { state: () => {}, event: () => {} });
  stream.start();
  expect(Source.open()).toHaveLength(0);
  vi.advanceTimersByTime(11_000);
  expect(Source.open()).toHaveLength(1);
  stream.stop();
  expect(Source.open()).toHaveLength(0);
});
