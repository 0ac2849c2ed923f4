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

/** The longest time from a request's end until the log has it. */
const LOG_DELAY = 15_000;
const MOST_RECENT = 500;
/** The time until a request that ended before the stream began is in the log. */
const SETTLE = 1_500;
/** Queries whose changes the stream does not report, and queries that are refreshed separately. */
const UNREPORTED = new Set(["whoami", "logs", "begun", "statistics"]);

export class Live {
  private stream: Stream | undefined;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private readonly acts = new Map<string, (data: unknown) => void>();
  private current: LiveState = { state: "connecting" };
  private readonly watchers = new Set<() => void>();
  private readonly listeners = new Set<(entry: LogEntry) => void>();
  private lately: { receivedAt: number; entry: LogEntry }[] = [];
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

  /** The requests that ended in the past seconds, newest first: for lists that are opened now. */
  recent(): LogEntry[] {
    const oldest = Date.now() - LOG_DELAY;
    return this.lately.filter(({ receivedAt }) => receivedAt >= oldest).map(({ entry }) => entry);
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
      this.settled = setTimeout(
        () => void this.cache.invalidateQueries({ queryKey: ["logs", "pages"] }),
        SETTLE,
      );
    });
    this.on("status", (data) => this.outages.status(data as DatabaseStatus));
    this.on("overview", (data) => this.put(keys.overview, data));
    this.on("sessions", (data) => {
      this.put(keys.sessions, data);
      this.refresh.sessions(data as Schemas["ActiveSession"][]);
    });
    this.on("breaker", (data) => this.breaker(data as { providerId: number }));
    this.on("log", (data) => {
      const entry = data as LogEntry;
      this.lately = [{ receivedAt: Date.now(), entry }, ...this.lately].slice(0, MOST_RECENT);
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
