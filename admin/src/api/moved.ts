/**
 * What the event stream says has moved, and what is read again for it: the limits of those whose
 * requests began or ended, one's own use, and (seldom) the charts. Each at most so often, however
 * much comes; what nobody looks at is not read.
 */
import type { QueryClient } from "@tanstack/react-query";
import type { Schemas } from "./client";
import { keys } from "./queries";

type Session = Schemas["ActiveSession"];
type Entry = Schemas["LogEntry"];

/** Counters are in the gateway's memory: cheap to read. */
const LIMITS = 500;
/** Sums come from the database, where a request is a moment after it ended. */
const SUMS = 3_000;
const CHARTS = 30_000;
const MISSED = 3_000;

/** Does something once, so long after it was first asked for. */
class Later {
  private timer: ReturnType<typeof setTimeout> | undefined;
  constructor(
    private readonly pause: number,
    private readonly act: () => void,
  ) {}
  ask() {
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

export class Moved {
  /** `key 3`, `user 1`, `provider 2`. */
  private holders = new Set<string>();
  private before = new Map<string, Session>();
  private readonly limits: Later;
  private readonly own: Later;
  private readonly charts: Later;
  private readonly log: Later;

  constructor(private readonly cache: QueryClient) {
    const renew = (queryKey: readonly unknown[]) => void cache.invalidateQueries({ queryKey });
    this.limits = new Later(LIMITS, () => this.readLimits());
    this.own = new Later(SUMS, () => renew(["my-usage", "today"]));
    this.charts = new Later(CHARTS, () => {
      renew(["statistics"]);
      // What is spent of the tightest limit, and the last use.
      renew(keys.users);
    });
    this.log = new Later(MISSED, () => renew(["logs"]));
  }

  stop() {
    for (const later of [this.limits, this.own, this.charts, this.log]) later.stop();
    this.holders.clear();
  }

  /** A request ended. */
  request(entry: Entry) {
    this.touch(entry);
    this.charts.ask();
    if (
      entry.keyId != null &&
      entry.keyId === this.cache.getQueryData<Schemas["WhoAmI"]>(keys.whoami)?.keyId
    )
      this.own.ask();
  }

  /** The live sessions now. A changed count means that a request began or ended, on any node. */
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

  /** So many requests were not told. */
  missed() {
    this.log.ask();
    this.charts.ask();
  }

  private touch({ userId, keyId, providerId }: Pick<Entry, "userId" | "keyId" | "providerId">) {
    this.holders.add(`user ${userId}`).add(`key ${keyId}`).add(`provider ${providerId}`);
    this.limits.ask();
  }

  private readLimits() {
    const { holders } = this;
    this.holders = new Set();
    const me = this.cache.getQueryData<Schemas["WhoAmI"]>(keys.whoami);
    const mine = holders.has(`user ${me?.userId}`);
    void this.cache.invalidateQueries({
      predicate: ({ queryKey: [name, kind, id] }) =>
        (name === "limits" && holders.has(`${kind} ${id}`)) ||
        (mine && name === "my-usage" && kind === "quota"),
    });
  }
}
