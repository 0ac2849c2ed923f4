/** The time at which a user or a key next expires, which no event reports. Pure. */
import type { Schemas } from "./client";

const DAY = 24 * 3_600_000;
/** For clocks that differ, and for the way of the request. */
const AFTER = 500;

/** The milliseconds until a user or a key expires, at most a day; `false` if none will. */
export function nextExpiry(users: Schemas["UserRecord"][] = []): number | false {
  const left = users
    .flatMap((user) => [user, ...user.keys])
    .flatMap(({ expiresAt }) => (expiresAt ? Date.parse(expiresAt) - Date.now() : []))
    .filter((ms) => ms > 0);
  return left.length === 0 ? false : Math.min(DAY, Math.min(...left) + AFTER);
}
