/**
 * One stream of server-sent events for all tabs: it is open while at least one page has joined,
 * reconnects by itself (ever more slowly), and tells a page that joins later what the others
 * already know. It runs in a shared worker (`stream-worker.ts`), or in the page itself where the
 * browser has none (`stream.ts`).
 *
 * A browser keeps at most six connections to a server over HTTP/1.1: one stream per tab would leave
 * none for requests.
 */

export type LiveState =
  | { state: "connecting" | "live" | "off"; since?: undefined }
  | { state: "lost"; since: number };

/**
 * What a page says. `join` again and again: a page that has not said so for `LEASE` is gone. `now`:
 * the gateway is back, so a lost connection need not wait for its next attempt.
 */
export type ToHub = "join" | "leave" | "now";
/** What a page is told. `data` is the event's JSON text. */
export type FromHub =
  | { kind: "state"; state: LiveState }
  | { kind: "event"; name: string; data: string };

/** The end of a page; a `MessagePort` is one. */
export interface Port {
  postMessage(message: FromHub): void;
}

const EVENTS = [
  "hello",
  "status",
  "overview",
  "sessions",
  "breaker",
  "log",
  "configuration",
  "missed",
];
/** Events that describe a state: a page that joins later gets the last one of each. */
const KEPT = ["hello", "status", "overview", "sessions"];
/** Comments do not reach the page, so only a closed connection that stays silent counts as lost. */
const SILENCE = 40_000;
const SLOWEST = 30_000;
/** How often a page says that it is still there, and for how long it is believed. */
export const BEAT = 20_000;
const LEASE = 75_000;

export class Hub {
  private source: EventSource | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private state: LiveState = { state: "connecting" };
  private readonly ports = new Map<Port, number>();
  private readonly kept = new Map<string, string>();

  take(port: Port, message: ToHub) {
    this.expire();
    if (message === "leave") {
      this.ports.delete(port);
    } else if (message === "now") {
      if (this.retry !== undefined) this.open();
    } else {
      const known = this.ports.has(port);
      this.ports.set(port, Date.now());
      if (this.source === undefined && this.retry === undefined) this.open();
      port.postMessage({ kind: "state", state: this.state });
      if (!known && this.state.state === "live") {
        for (const [name, data] of this.kept) port.postMessage({ kind: "event", name, data });
      }
    }
    if (this.ports.size === 0) this.close();
  }

  /** Pages that ended without a word. */
  private expire() {
    for (const [port, heard] of this.ports) if (Date.now() - heard > LEASE) this.ports.delete(port);
  }

  private open() {
    clearTimeout(this.retry);
    this.retry = undefined;
    const source = new EventSource("/api/events");
    this.source = source;
    source.onerror = () => this.lost();
    for (const name of EVENTS) {
      source.addEventListener(name, (event) =>
        this.event(name, (event as MessageEvent<string>).data),
      );
    }
    this.hush();
  }

  private close() {
    clearTimeout(this.retry);
    clearTimeout(this.watch);
    this.retry = undefined;
    this.source?.close();
    this.source = undefined;
    this.kept.clear();
    this.failures = 0;
    this.state = { state: "connecting" };
  }

  private event(name: string, data: string) {
    this.hush();
    if (name === "hello") this.failures = 0;
    if (KEPT.includes(name)) this.kept.set(name, data);
    if (this.state.state !== "live") this.become({ state: "live" });
    this.tell({ kind: "event", name, data });
  }

  private hush() {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => {
      this.expire();
      if (this.ports.size === 0) this.close();
      else if (this.source?.readyState === EventSource.OPEN) this.hush();
      else this.lost();
    }, SILENCE);
  }

  private lost() {
    clearTimeout(this.watch);
    this.source?.close();
    this.source = undefined;
    this.kept.clear();
    this.failures += 1;
    if (this.state.state !== "lost") this.become({ state: "lost", since: Date.now() });
    clearTimeout(this.retry);
    this.retry = setTimeout(
      () => {
        this.expire();
        if (this.ports.size === 0) this.close();
        else this.open();
      },
      Math.min(SLOWEST, 1000 * 2 ** Math.min(this.failures, 5)),
    );
  }

  private become(state: LiveState) {
    this.state = state;
    this.tell({ kind: "state", state });
  }

  private tell(message: FromHub) {
    for (const port of this.ports.keys()) port.postMessage(message);
  }
}
