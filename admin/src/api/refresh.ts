/**
 * Reads data again after events of the stream: the limits of keys, users and providers whose
 * requests began or ended, the session's own usage, and (rarely) the charts. Each is read at most
 * once per interval, however many events arrive. Data that no page shows is not read.
 */
import type { QueryClient } from "@tanstack/react-query";
import type { Schemas } from "./client";
import { keys } from "./queries";

type Session = Schemas["ActiveSession"];
type Entry = Schemas["LogEntry"];

/** Counters are in the gateway's memory, so reading them costs little. */
const LIMITS = 500;
/** Sums come from the database, which has a request shortly after its end. */
const SUMS = 3_000;
const CHARTS = 30_000;
const MISSED = 3_000;

/** Runs an action once, a fixed time after the first request for it. */
class Delayed {
  private timer: ReturnType<typeof setTimeout> | undefined;
  constructor(
    private readonly pause: number,
    private readonly act: () => void,
  ) {}
  schedule() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.act();
    }, this.pause);
  }
  stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

export class Refresh {
  /** `key 3`, `user 1`, `provider 2`. */
  private limitOwners = new Set<string>();
  private before = new Map<string, Session>();
  private readonly limits: Delayed;
  private readonly own: Delayed;
  private readonly charts: Delayed;
  private readonly log: Delayed;
  private readonly list: Delayed;

  constructor(private readonly cache: QueryClient) {
    const renew = (queryKey: readonly unknown[]) => void cache.invalidateQueries({ queryKey });
    this.limits = new Delayed(LIMITS, () => this.readLimits());
    this.own = new Delayed(SUMS, () => renew(["my-usage", "today"]));
    this.charts = new Delayed(CHARTS, () => {
      renew(["statistics"]);
      // The amount spent of the tightest limit, and the last use.
      renew(keys.users);
    });
    this.list = new Delayed(MISSED, () => {
      void cache.invalidateQueries({ queryKey: keys.sessions, exact: true });
    });
    this.log = new Delayed(MISSED, () => {
      renew(["logs"]);
      renew(["my-usage", "logs"]);
    });
  }

  stop() {
    const timers = [this.limits, this.own, this.charts, this.log, this.list];
    for (const timer of timers) timer.stop();
    this.limitOwners.clear();
  }

  /** A request ended. */
  request(entry: Entry) {
    this.touch(entry);
    this.charts.schedule();
    if (
      entry.keyId != null &&
      entry.keyId === this.cache.getQueryData<Schemas["WhoAmI"]>(keys.whoami)?.keyId
    )
      this.own.schedule();
  }

  /**
   * The current live sessions. A changed count means that a request began or ended, on any node.
   */
  sessions(now: Session[]) {
    const sessions = new Map(
      now.map((session) => [`${session.keyId} ${session.sessionId}`, session]),
    );
    for (const [id, session] of sessions) {
      const before = this.before.get(id);
      const same =
        before?.requestCount === session.requestCount &&
        before.concurrentCount === session.concurrentCount;
      if (!same) this.touch(session);
    }
    for (const [id, session] of this.before) if (!sessions.has(id)) this.touch(session);
    this.before = sessions;
  }

  /** There are more live sessions than the event lists. */
  allSessions() {
    this.list.schedule();
  }

  /** Events were left out. */
  missed() {
    this.log.schedule();
    this.charts.schedule();
  }

  private touch({ userId, keyId, providerId }: Pick<Entry, "userId" | "keyId" | "providerId">) {
    this.limitOwners.add(`user ${userId}`).add(`key ${keyId}`).add(`provider ${providerId}`);
    this.limits.schedule();
  }

  private readLimits() {
    const { limitOwners } = this;
    this.limitOwners = new Set();
    const me = this.cache.getQueryData<Schemas["WhoAmI"]>(keys.whoami);
    const mine = limitOwners.has(`user ${me?.userId}`);
    void this.cache.invalidateQueries({
      predicate: ({ queryKey: [name, kind, id] }) =>
        (name === "limits" && limitOwners.has(`${kind} ${id}`)) ||
        (mine && name === "my-usage" && kind === "quota"),
    });
  }
}
