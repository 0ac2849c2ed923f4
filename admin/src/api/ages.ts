/** When the use of limits changes with time alone: the event stream has requests only. Pure. */
import type { Schemas } from "./client";

type Usage = Schemas["LimitUsage"] & { rpm?: Schemas["RateUsage"] };

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/**
 * When a holder's use changes by the clock alone, in milliseconds from now: a window ends, or what
 * is in a rolling one ages. `false` when nothing is in any.
 */
export function ages(usages: (Usage | undefined)[]): number | false {
  const next = usages.flatMap((usage) => {
    if (usage === undefined) return [];
    const windows = [
      usage.cost5h,
      usage.costDaily,
      usage.costWeekly,
      usage.costMonthly,
      usage.costTotal,
    ];
    const ends = windows.flatMap(({ current, resetAt }) =>
      current > 0 && resetAt ? [Math.max(1_000, Date.parse(resetAt) - Date.now() + 500)] : [],
    );
    if (usage.cost5h.current > 0) ends.push(5 * MINUTE);
    if ((usage.rpm?.current ?? 0) > 0) ends.push(MINUTE / 4);
    return ends;
  });
  return next.length === 0 ? false : Math.min(DAY, ...next);
}
