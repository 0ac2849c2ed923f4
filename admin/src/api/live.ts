/**
 * The live connection: the stream of server-sent events (`stream.ts`, shared by all tabs), written
 * into the query cache. Nothing polls what comes this way.
 *
 * States: `connecting`, `live`, `lost` (since when; it tries again by itself), `off` (this browser
 * has no such streams).
 */
import type { QueryClient, QueryFilters, QueryKey } from "@tanstack/react-query";
import type { Schemas } from "./client";
import { Moved } from "./moved";
import { type DatabaseStatus, Outages } from "./outage";
import { keys } from "./queries";
import { Stream } from "./stream";
import type { LiveState } from "./stream-hub";

export type LogEntry = Schemas["LogEntry"];

/** The longest time from a request's end until the log has it. */
const UNDERWAY = 15_000;
const MOST_UNDERWAY = 500;
/** Until a request that ended before the stream began is in the log. */
const SETTLE = 1_500;
/** What the stream says nothing of, or what is read anew by itself. */
const UNHEARD = new Set(["whoami", "logs", "begun", "statistics"]);

export class Live {
  private stream: Stream | undefined;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private readonly acts = new Map<string, (data: unknown) => void>();
  private current: LiveState = { state: "connecting" };
  private readonly watchers = new Set<() => void>();
  private readonly listeners = new Set<(entry: LogEntry) => void>();
  private underway: { heard: number; entry: LogEntry }[] = [];
  private readonly cache: QueryClient;
  private readonly moved: Moved;
  /** What is away. */
  readonly outages: Outages;

  /** `viewer` says who is logged in; see `Stream`. */
  constructor(
    cache: QueryClient,
    private readonly viewer = "",
  ) {
    this.cache = cache;
    this.moved = new Moved(cache);
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

  /** Hears of every request that ends. */
  onLog(listener: (entry: LogEntry) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The requests that ended in the past seconds, newest first: for lists that begin now. */
  recent(): LogEntry[] {
    const oldest = Date.now() - UNDERWAY;
    return this.underway.filter(({ heard }) => heard >= oldest).map(({ entry }) => entry);
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
          // An event that cannot be read changes nothing.
        }
      },
    });
    this.outages.start();
    this.stream.start();
  }

  stop() {
    clearTimeout(this.settled);
    this.moved.stop();
    this.outages.stop();
    this.stream?.stop();
    this.stream = undefined;
  }

  /** What each event does. */
  private listen() {
    this.on("hello", () => {
      // What changed before this moment was not heard of: whatever was read by then is read again.
      // Requests need a moment to reach the log.
      this.renew({ predicate: ({ queryKey: [name] }) => !UNHEARD.has(String(name)) });
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
      this.moved.sessions(data as Schemas["ActiveSession"][]);
    });
    this.on("breaker", (data) => this.breaker(data as { providerId: number }));
    this.on("log", (data) => {
      const entry = data as LogEntry;
      this.underway = [{ heard: Date.now(), entry }, ...this.underway].slice(0, MOST_UNDERWAY);
      this.moved.request(entry);
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
    this.on("missed", () => this.moved.missed());
  }

  /**
   * Reads again what these hold. A first reading that is still in progress may have been answered
   * before the change, and `invalidateQueries` would wait for just that one: it is begun again.
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
   * Takes over what the stream says is so now. A reading that is still in progress may have been
   * answered before, and would put the older state in its place, for good where nothing changes any
   * more: it is given up.
   */
  private put(queryKey: QueryKey, data: unknown) {
    const one = { queryKey, exact: true };
    if (this.cache.isFetching(one) === 0) this.cache.setQueryData(queryKey, data);
    else void this.cache.cancelQueries(one).then(() => this.cache.setQueryData(queryKey, data));
  }

  /** One of many: a reading that is under way is begun again, for the others. */
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
