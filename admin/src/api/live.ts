/**
 * The live connection: one stream of server-sent events, written into the query cache. Nothing polls what comes this way.
 *
 * States: `connecting`, `live`, `lost` (since when; it tries again by itself, ever more slowly), `off` (this gateway has no
 * stream for us). A heartbeat comes every 15 s; without one for 40 s the connection counts as lost.
 */
import type { QueryClient } from "@tanstack/react-query";
import type { Schemas } from "./client";
import { keys } from "./queries";

export type LiveState = { state: "connecting" | "live" | "off"; since?: undefined } | { state: "lost"; since: number };
export type LogEntry = Schemas["LogEntry"];

const SILENCE = 40_000;
const SLOWEST = 30_000;

export class Live {
  private source: EventSource | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private current: LiveState = { state: "connecting" };
  private readonly watchers = new Set<() => void>();
  private readonly listeners = new Set<(entry: LogEntry) => void>();
  private readonly cache: QueryClient;

  constructor(cache: QueryClient) {
    this.cache = cache;
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

  start() {
    this.stop();
    if (typeof EventSource === "undefined") return this.become({ state: "off" });
    const source = new EventSource("/api/events");
    this.source = source;
    source.onerror = () => this.lost();
    this.on("hello", () => {
      const again = this.failures > 0;
      this.failures = 0;
      this.become({ state: "live" });
      // What was missed meanwhile is read anew.
      if (again) void this.cache.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "logs" });
    });
    this.on("overview", (data) => this.cache.setQueryData(keys.overview, data));
    this.on("sessions", (data) => this.cache.setQueryData(keys.sessions, data));
    this.on("breaker", (data) => this.breaker(data as { providerId: number }));
    this.on("log", (data) => {
      for (const listener of this.listeners) listener(data as LogEntry);
    });
    this.on("configuration", () => {
      for (const key of [keys.users, keys.providers, keys.prices, ["limits"], ["settings"], ["rules"], ["audit"]]) {
        void this.cache.invalidateQueries({ queryKey: key });
      }
    });
    this.on("missed", () => void this.cache.invalidateQueries({ queryKey: ["logs"] }));
    this.hush();
  }

  stop() {
    clearTimeout(this.retry);
    clearTimeout(this.watch);
    this.source?.close();
    this.source = undefined;
  }

  private on(name: string, act: (data: unknown) => void) {
    this.source?.addEventListener(name, (event) => {
      this.hush();
      if (this.current.state !== "live" && name !== "hello") this.become({ state: "live" });
      try {
        act(JSON.parse((event as MessageEvent<string>).data));
      } catch {
        // An event that cannot be read changes nothing.
      }
    });
  }

  private breaker(record: { providerId: number }) {
    this.cache.setQueryData<{ providerId: number }[]>(keys.health, (old) => {
      if (!old) return old;
      const others = old.filter((one) => one.providerId !== record.providerId);
      return [...others, record].sort((a, b) => a.providerId - b.providerId);
    });
  }

  /** Starts waiting for the next sign of life. Comments do not reach us, so a quiet gateway is asked whether it is there. */
  private hush() {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => {
      if (this.source?.readyState === EventSource.OPEN) this.hush();
      else this.lost();
    }, SILENCE);
  }

  private lost() {
    this.stop();
    this.failures += 1;
    if (this.current.state !== "lost") this.become({ state: "lost", since: Date.now() });
    this.retry = setTimeout(() => this.start(), Math.min(SLOWEST, 1000 * 2 ** Math.min(this.failures, 5)));
  }

  private become(state: LiveState) {
    this.current = state;
    for (const watcher of this.watchers) watcher();
  }
}
