/**
 * The live connection: writes the server-sent events (`stream.ts`, shared by all tabs) into the
 * query cache. Data from the stream is not polled.
 *
 * States: `connecting`, `live`, `lost` (with its start; it reconnects automatically), `off` (this
 * browser does not support the stream).
 */
import type { QueryClient, QueryFilters, QueryKey } from "@tanstack/react-query";
import type { Schemas } from "./client";
import { type DatabaseStatus, Outages } from "./outage";
import { keys } from "./queries";
import { Refresh } from "./refresh";
import { Stream } from "./stream";
import type { LiveState } from "./stream-hub";

export type LogEntry = Schemas["LogEntry"];

/** A request of the stream. `number` counts them; `receivedAt`: milliseconds since 1970. */
export interface Arrived {
  number: number;
  receivedAt: number;
  entry: LogEntry;
}

/** The longest time from a request's end until the log has it, in milliseconds. */
export const longestDelay = 15_000;
/** The number of requests that are kept. The gateway sends at most 100 per second. */
const MOST_KEPT = 2_000;
/** The time until a request that ended before the stream began is in the log. */
const SETTLE = 1_500;
/** The number of sessions in an event. If there are more, the list is read. */
const MOST_SESSIONS = 200;
/** Queries whose changes the stream does not report, and queries that are refreshed separately. */
const UNREPORTED = new Set(["logs", "begun", "statistics"]);

export class Live {
  private stream: Stream | undefined;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private readonly acts = new Map<string, (data: unknown) => void>();
  private current: LiveState = { state: "connecting" };
  private readonly watchers = new Set<() => void>();
  private readonly listeners = new Set<(entry: LogEntry) => void>();
  private latest: readonly Arrived[] = [];
  private readonly cache: QueryClient;
  private readonly refresh: Refresh;
  /** The component that cannot be reached. */
  readonly outages: Outages;

  /** `viewer` identifies the session; see `Stream`. */
  constructor(
    cache: QueryClient,
    private readonly viewer = "",
  ) {
    this.cache = cache;
    this.refresh = new Refresh(cache);
    this.outages = new Outages(() => {
      this.stream?.now();
      void cache.invalidateQueries();
    });
    this.listen();
  }

  /** For `useSyncExternalStore`. */
  readonly subscribe = (watcher: () => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };
  readonly state = () => this.current;

  /** Calls back for every request that ends. */
  onLog(listener: (entry: LogEntry) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** For `useSyncExternalStore`: the last requests that ended, newest first. */
  readonly subscribeLog = (watcher: () => void) => this.onLog(watcher);
  readonly arrived = () => this.latest;

  /** More requests ended than a list can add: it is read again, in a moment. */
  readLog() {
    this.refresh.missed();
  }

  start() {
    this.stop();
    if (typeof EventSource === "undefined") return this.become({ state: "off" });
    this.stream = new Stream(this.viewer, {
      state: (state) => this.become(state),
      event: (name, data) => {
        try {
          this.acts.get(name)?.(JSON.parse(data));
        } catch {
          // An event that cannot be parsed changes nothing.
        }
      },
    });
    this.outages.start();
    this.stream.start();
  }

  stop() {
    clearTimeout(this.settled);
    this.refresh.stop();
    this.outages.stop();
    this.stream?.stop();
    this.stream = undefined;
  }

  /** Registers the handler of each event. */
  private listen() {
    this.on("hello", () => {
      // Changes before this moment were not reported, so all data is read again. Requests need a
      // moment to reach the log.
      this.renew({ predicate: ({ queryKey: [name] }) => !UNREPORTED.has(String(name)) });
      clearTimeout(this.settled);
      this.settled = setTimeout(() => {
        for (const queryKey of [
          ["logs", "pages"],
          ["my-usage", "logs"],
        ])
          void this.cache.invalidateQueries({ queryKey });
      }, SETTLE);
    });
    this.on("status", (data) => this.outages.status(data as DatabaseStatus));
    this.on("overview", (data) => this.put(keys.overview, data));
    this.on("sessions", (data) => {
      const sessions = data as Schemas["ActiveSession"][];
      if (sessions.length < MOST_SESSIONS) this.put(keys.sessions, sessions);
      else this.refresh.allSessions();
      this.refresh.sessions(sessions);
    });
    this.on("breaker", (data) => this.breaker(data as { providerId: number }));
    this.on("log", (data) => {
      const entry = data as LogEntry;
      const number = (this.latest[0]?.number ?? 0) + 1;
      const arrived = { number, receivedAt: Date.now(), entry };
      this.latest = [arrived, ...this.latest.slice(0, MOST_KEPT - 1)];
      this.refresh.request(entry);
      for (const listener of this.listeners) listener(entry);
    });
    this.on("configuration", () => {
      for (const key of [
        keys.whoami,
        keys.users,
        keys.providers,
        keys.health,
        keys.prices,
        ["limits"],
        ["settings"],
        ["rules"],
        ["audit"],
        ["my-usage", "metadata"],
        ["my-usage", "quota"],
        ["my-usage", "models"],
      ]) {
        this.renew({ queryKey: key });
      }
    });
    this.on("missed", () => this.refresh.missed());
  }

  /**
   * Reads these queries again. A first read that is still in progress may have been answered before
   * the change, and `invalidateQueries` would wait for it. So that read is restarted.
   */
  private renew(filters: QueryFilters) {
    const first = this.cache
      .getQueryCache()
      .findAll({ ...filters, fetchStatus: "fetching" })
      .filter(({ state }) => state.data === undefined);
    void this.cache.invalidateQueries(filters);
    for (const { queryKey } of first) {
      const one = { queryKey, exact: true };
      void this.cache.cancelQueries(one).then(() => this.cache.invalidateQueries(one));
    }
  }

  private on(name: string, act: (data: unknown) => void) {
    this.acts.set(name, act);
  }

  /**
   * Writes the state that the stream reports. A read that is still in progress may have been
   * answered earlier and would replace it by the older state. So that read is cancelled.
   */
  private put(queryKey: QueryKey, data: unknown) {
    const one = { queryKey, exact: true };
    if (this.cache.isFetching(one) === 0) this.cache.setQueryData(queryKey, data);
    else void this.cache.cancelQueries(one).then(() => this.cache.setQueryData(queryKey, data));
  }

  /** One of several: a read in progress is restarted, because of the others. */
  private breaker(record: { providerId: number }) {
    if (this.cache.isFetching({ queryKey: keys.health, exact: true }) > 0)
      this.renew({ queryKey: keys.health });
    this.cache.setQueryData<{ providerId: number }[]>(keys.health, (old) => {
      if (!old) return old;
      const others = old.filter((one) => one.providerId !== record.providerId);
      return [...others, record].sort((a, b) => a.providerId - b.providerId);
    });
  }

  private become(state: LiveState) {
    if (state.state === this.current.state && state.since === this.current.since) return;
    this.current = state;
    if (state.state === "lost") this.outages.lost();
    if (state.state === "live") this.outages.live();
    for (const watcher of this.watchers) watcher();
  }
}
