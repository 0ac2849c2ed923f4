import { expect, test, vi } from "vitest";
import type { Schemas } from "./client";
import { nextExpiry } from "./next-expiry";

test("users are read again when the first of them or of their keys expires, and daily", () => {
  vi.useFakeTimers({ now: Date.parse("2026-06-01T00:00:00Z") });
  const users = (...expiries: (string | null)[]) =>
    expiries.map((expiresAt) => ({
      expiresAt: null,
      keys: [{ expiresAt }],
    })) as unknown as Schemas["UserRecord"][];
  expect(nextExpiry(undefined)).toBe(false);
  expect(nextExpiry(users(null, "2026-05-31T00:00:00Z"))).toBe(false);
  expect(nextExpiry(users("2026-06-01T00:00:10Z", "2026-06-01T00:00:03Z"))).toBe(3_500);
  expect(nextExpiry(users("2026-07-01T00:00:00Z"))).toBe(24 * 3_600_000);
  vi.useRealTimers();
});
