/** Figures in place: money, counts, durations and times, short in the page and exact on hover. */
import { useEffect, useState } from "react";
import {
  clockTime,
  count,
  duration,
  exactMoney,
  exactTime,
  money,
  relativeTime,
  shortCount,
  useFormat,
} from "./format";

export function Money({
  amount,
  none = "—",
}: {
  amount: number | null | undefined;
  none?: string;
}) {
  const format = useFormat();
  if (amount === null || amount === undefined) return <span className="text-faint">{none}</span>;
  return (
    <span className="tabular" title={exactMoney(amount, format)}>
      {money(amount, format)}
    </span>
  );
}

export function Count({
  value,
  short = false,
}: {
  value: number | null | undefined;
  short?: boolean;
}) {
  const format = useFormat();
  if (value === null || value === undefined) return <span className="text-faint">—</span>;
  return (
    <span className="tabular" title={count(value, format)}>
      {short ? shortCount(value, format) : count(value, format)}
    </span>
  );
}

export function Duration({ ms }: { ms: number | null | undefined }) {
  const format = useFormat();
  if (ms === null || ms === undefined) return <span className="text-faint">—</span>;
  return <span className="tabular">{duration(ms, format)}</span>;
}

/** One clock for all relative times. */
const watchers = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

/** Now, renewed every ten seconds (or every `every` ms). */
export function useNow(every = 10_000): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    if (every < 10_000) {
      const own = setInterval(() => setNow(new Date()), every);
      return () => clearInterval(own);
    }
    const watcher = () => setNow(new Date());
    watchers.add(watcher);
    ticking ??= setInterval(() => {
      for (const each of watchers) each();
    }, 10_000);
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) {
        clearInterval(ticking);
        ticking = undefined;
      }
    };
  }, [every]);
  return now;
}

/** A time: `relative` ("5 min. ago") or absolute; exact on hover, in the gateway's time zone. */
export function Time({
  at,
  relative = true,
  none = "—",
}: {
  at: string | number | null | undefined;
  relative?: boolean;
  none?: string;
}) {
  const format = useFormat();
  const now = useNow();
  if (at === null || at === undefined) return <span className="text-faint">{none}</span>;
  const date = new Date(at);
  return (
    <time
      dateTime={date.toISOString()}
      title={`${exactTime(date, format)} (${format.timeZone ?? "local"})`}
      className="tabular whitespace-nowrap"
    >
      {relative ? relativeTime(date, now, format) : clockTime(date, now, format)}
    </time>
  );
}

/** Counts down to a moment, by the second. */
export function Countdown({ until }: { until: string | number }) {
  const format = useFormat();
  const now = useNow(1000);
  return (
    <span className="tabular">
      {duration(
        Math.max(0, Math.ceil((new Date(until).getTime() - now.getTime()) / 1000) * 1000),
        format,
      )}
    </span>
  );
}
