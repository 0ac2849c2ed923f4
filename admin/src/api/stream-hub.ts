/**
 * One stream of server-sent events for all tabs. It is open while at least one page has joined, and
 * reconnects automatically with increasing pauses. A page that joins later gets the current state.
 * It runs in a shared worker (`stream-worker.ts`), or in the page if the browser has none
 * (`stream.ts`).
 *
 * A browser has at most six connections to a server over HTTP/1.1. One stream per tab would leave
 * none for requests.
 */

export type LiveState =
  | { state: "connecting" | "live" | "off"; since?: undefined }
  | { state: "lost"; since: number };

/**
 * A message of a page. `join` is a heartbeat: a page that has not sent one for `LEASE` has left.
 * `now`: the gateway is back, so a lost connection is opened without waiting.
 */
export type ToHub = "join" | "leave" | "now";
/** A message to a page. `data` is the event's JSON text. */
export type FromHub =
  | { kind: "state"; state: LiveState }
  | { kind: "event"; name: string; data: string };

/** The connection to a page; a `MessagePort` is one. */
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
/** The interval of a page's heartbeats, and the time after which a page without one has left. */
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

  /** Removes pages that sent no heartbeat. */
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
