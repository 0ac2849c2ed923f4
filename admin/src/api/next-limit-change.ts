/**
 * The time at which the use of limits next changes without a request. The event stream reports only
 * requests. Pure.
 */
import type { Schemas } from "./client";

type Usage = Schemas["LimitUsage"] & { rpm?: Schemas["RateUsage"] };

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/**
 * The milliseconds until the use of a key, a user or a provider changes without a request: a window
 * ends, or costs leave a rolling window. `false` if nothing is in any window.
 */
export function nextLimitChange(usages: (Usage | undefined)[]): number | false {
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
