/**
 * Whether the shown data may be outdated because the database or the gateway cannot be reached.
 * Refused requests and the event stream report it. During an outage a request every few seconds
 * checks it. After the outage all data is read again.
 */
import { type ApiError, call, whenDatabaseAway } from "./client";

export interface Outage {
  what: "database" | "gateway";
  since: number;
  /** The shown data is not newer than this. */
  asOf: number;
}

/** The stream's report about the database. */
export interface DatabaseStatus {
  databaseUp: boolean;
  databaseDownSince?: string | null;
  figuresAt?: string | null;
}

const AGAIN = 5_000;
/**
 * A connection that is back within this time, as after an upgrade of the gateway, is not reported.
 */
const SHORT = 3_000;

const moment = (text: unknown): number | undefined =>
  typeof text === "string" && !Number.isNaN(Date.parse(text)) ? Date.parse(text) : undefined;

export class Outages {
  private current: Outage | undefined;
  /** The open stream reports that the database is away, and will report when it is back. */
  private reported = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private started = false;
  /** The start of the loss of the stream. */
  private lostAt: number | undefined;
  private readonly watchers = new Set<() => void>();

  /** `onBack` reads all data again. */
  constructor(private readonly onBack: () => void) {}

  /** For `useSyncExternalStore`. */
  readonly subscribe = (watcher: () => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };
  readonly state = () => this.current;

  start() {
    this.started = true;
    whenDatabaseAway((error) => this.refused(error));
  }

  stop() {
    this.started = false;
    clearTimeout(this.timer);
    this.timer = undefined;
    whenDatabaseAway(undefined);
  }

  /** The stream's report. */
  status({ databaseUp, databaseDownSince, figuresAt }: DatabaseStatus) {
    this.reported = !databaseUp;
    if (databaseUp) return this.current?.what === "database" ? this.back() : undefined;
    const since = moment(databaseDownSince) ?? Date.now();
    this.become({ what: "database", since, asOf: moment(figuresAt) ?? since });
  }

  /** The stream was lost; a request finds out why. */
  lost() {
    this.reported = false;
    this.lostAt ??= Date.now();
    this.ask(SHORT);
  }

  /** The stream is open. */
  live() {
    this.lostAt = undefined;
    if (this.current?.what === "gateway") this.back();
  }

  /** A request was refused because the database is away. */
  private refused(error: ApiError) {
    const since = moment(error.params.since) ?? Date.now();
    // The stream knows the time of the figures.
    if (this.current?.what === "database") return this.ask(AGAIN);
    this.become({ what: "database", since, asOf: since });
  }

  private become(outage: Outage) {
    this.current = outage;
    for (const watcher of this.watchers) watcher();
    this.ask(AGAIN);
  }

  private back() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.current = undefined;
    for (const watcher of this.watchers) watcher();
    this.onBack();
  }

  private ask(pause: number) {
    if (this.started) this.timer ??= setTimeout(() => void this.look(), pause);
  }

  private async look() {
    this.timer = undefined;
    if (this.current === undefined && this.lostAt === undefined) return;
    // A hidden page does not check; it tries again later.
    if (document.visibilityState === "hidden") return this.ask(AGAIN);
    try {
      await call("auth/whoami", {});
      if (this.current === undefined) return;
      if (this.reported) this.ask(AGAIN);
      else this.back();
    } catch (error) {
      const { status, params } = error as ApiError;
      const lostAt = this.lostAt ?? Date.now();
      if (params?.reason !== "database_unreachable" && (status === 0 || status === 502)) {
        if (this.current?.what !== "gateway")
          return this.become({ what: "gateway", since: lostAt, asOf: lostAt });
      }
      if (this.current !== undefined) this.ask(AGAIN);
    }
  }
}
