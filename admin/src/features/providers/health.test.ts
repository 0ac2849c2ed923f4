import { expect, test } from "vitest";
import { condition } from "./health";
import type { Health, Provider } from "./selection";

const NOW = Date.parse("2026-06-01T12:00:00Z");
const provider = { isEnabled: true } as Provider;
const state = (change: Partial<Health>) =>
  condition(
    provider,
    { state: "CLOSED", health: "healthy", failureCount: 0, ...change } as Health,
    NOW,
  );

test("a provider whose attempts all fail is failing, even if its circuit counts none", () => {
  expect(state({ health: "failing", failureCount: 0, failedInARow: 30 })).toBe("failing");
});

test("a provider that was never asked is not healthy but unused", () => {
  expect(state({ health: "never_used" })).toBe("unused");
  expect(condition(provider, undefined, NOW)).toBe("unused");
});

test("a provider that the gateway disabled differs from one that an administrator disabled", () => {
  const switchedOff = { at: "2026-06-01T11:00:00Z", failedProbes: 3, error: null };
  expect(condition({ isEnabled: false, switchedOff } as Provider, undefined, NOW)).toBe("gone");
  expect(condition({ isEnabled: false, switchedOff: null } as Provider, undefined, NOW)).toBe(
    "off",
  );
});

test("an open circuit and a pause come before what failed; disabled comes first", () => {
  expect(state({ health: "circuit_open", state: "OPEN", failedInARow: 3 })).toBe("open");
  expect(state({ state: "OPEN", halfOpen: true })).toBe("half");
  expect(
    state({ health: "cooldown", cooldownUntil: "2026-06-01T12:01:00Z", failedInARow: 1 }),
  ).toBe("cooldown");
  const keys = (...usable: boolean[]) =>
    usable.map((isUsable) => ({ isUsable })) as Health["credentials"];
  expect(state({ credentials: keys(false, true) })).toBe("good");
  expect(state({ credentials: keys(false, false) })).toBe("cooldown");
  expect(condition({ isEnabled: false } as Provider, { health: "failing" } as Health, NOW)).toBe(
    "off",
  );
  expect(
    condition(
      provider,
      { state: "CLOSED", health: "healthy", failureCount: 0 } as Health,
      NOW,
      true,
    ),
  ).toBe("spent");
});
