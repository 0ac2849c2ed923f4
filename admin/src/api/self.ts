/**
 * The caller's own record, as the list of users has it. Only administrators may list users, and
 * `auth/whoami` has neither what is spent of the limits nor when a key was used.
 */
import { call, type Schemas } from "./client";

type Tightest = NonNullable<Schemas["UserRecord"]["tightestLimit"]>;

/** The money limit of which the largest share is spent; of equal shares the shorter window. */
export function tightest(usage: Schemas["UserLimitUsage"]): Tightest | null {
  const windows = {
    "5h": usage.cost5h,
    daily: usage.costDaily,
    weekly: usage.costWeekly,
    monthly: usage.costMonthly,
    total: usage.costTotal,
  };
  let found: Tightest | null = null;
  for (const [window, { current, limit, resetAt }] of Object.entries(windows)) {
    if (limit === null) continue;
    const percent = limit > 0 ? (current / limit) * 100 : 100;
    if (found === null || percent > found.percent)
      found = { window, current, limit, percent, resetAt };
  }
  return found;
}

/** The caller as the only user; an empty list for the admin token. */
export async function readSelf(signal: AbortSignal): Promise<Schemas["UserRecord"][]> {
  const { user } = await call("auth/whoami", {}, signal);
  if (!user) return [];
  const userId = user.id;
  const [keys, usage] = await Promise.all([
    call("actions/keys/getKeys", { userId }, signal),
    call("actions/users/getUserLimitUsage", { userId }, signal),
  ]);
  const uses = keys.flatMap((key) => key.lastUsedAt ?? []).sort();
  return [{ ...user, keys, lastUsedAt: uses.at(-1) ?? null, tightestLimit: tightest(usage) }];
}
