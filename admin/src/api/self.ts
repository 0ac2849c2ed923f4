/**
 * The caller's own record, as the list of users has it. Only administrators may list users, and
 * `auth/whoami` has neither what is spent of the limits nor when a key was used.
 */
import { call, type Schemas } from "./client";

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
  return [{ ...user, keys, lastUsedAt: uses.at(-1) ?? null, tightestLimit: usage.tightestLimit }];
}
