import { expect, test } from "vitest";
import { type Health, type Provider, selection, supports } from "./selection";

const NOW = Date.parse("2026-06-01T12:00:00Z");
const provider = (id: number, fields: Partial<Provider> = {}) =>
  ({
    id,
    name: `p${id}`,
    priority: 0,
    weight: 1,
    isEnabled: true,
    groupTag: null,
    allowedModels: [],
    modelRedirects: {},
    ...fields,
  }) as Provider;
const health = (providerId: number, fields: Partial<Health>) =>
  ({ providerId, state: "CLOSED", halfOpen: false, cooldownUntil: null, ...fields }) as Health;
const all = { group: "", model: "" };

test("weights share a tier, and the lowest number goes first", () => {
  const tiers = selection(
    [
      provider(1, { weight: 3 }),
      provider(2),
      provider(3, { priority: -1, isEnabled: false }),
      provider(4, { priority: 2 }),
    ],
    [],
    all,
    NOW,
  );
  expect(tiers.map((tier) => [tier.priority, tier.first])).toEqual([
    [-1, false],
    [0, true],
    [2, false],
  ]);
  expect(tiers[1]?.choices.map(({ provider: { id }, share }) => [id, share])).toEqual([
    [1, 0.75],
    [2, 0.25],
  ]);
  expect(tiers[0]?.choices[0]?.out).toBe("disabled");
});

test("each is passed over for its own reason, in the gateway's order", () => {
  const providers = [
    provider(1, { groupTag: "team" }),
    provider(2, { allowedModels: ["other-*"] }),
    provider(3),
    provider(4),
    provider(5),
    provider(6),
  ];
  const states = [
    health(3, { state: "OPEN" }),
    health(4, { state: "OPEN", halfOpen: true }),
    health(5, { cooldownUntil: "2026-06-01T12:01:00Z" }),
  ];
  const tiers = selection(
    providers,
    states,
    { group: "default", model: "a-model" },
    NOW,
    ({ id }) => id === 6,
  );
  const out = Object.fromEntries(
    (tiers[0]?.choices ?? []).map((choice) => [choice.provider.id, choice.out]),
  );
  expect(out).toEqual({
    1: "group",
    2: "model",
    3: "circuit",
    4: undefined,
    5: "cooldown",
    6: "limit",
  });
});

test("a star sees every group, and a redirect is a model too", () => {
  expect(
    selection([provider(1, { groupTag: "team" })], [], { group: "*", model: "" }, NOW)[0]?.first,
  ).toBe(true);
  expect(supports(provider(1, { allowedModels: ["x"], modelRedirects: { y: "x" } }), "y")).toBe(
    true,
  );
  expect(supports(provider(1, { allowedModels: ["x-*"] }), "y-1")).toBe(false);
});

test("within a tier, providers of the request's format come before those that convert", () => {
  const providers = [
    provider(1, { providerType: "native", weight: 3 }),
    provider(2, { providerType: "native-auth", weight: 1 }),
    provider(3, { providerType: "responses", weight: 9 }),
    provider(4, { providerType: "responses", priority: 1 }),
  ];
  const asked = { group: "default", model: "", format: "native" as const };
  const [first, second] = selection(providers, [], asked, NOW);
  expect(
    first?.choices.map(({ provider, share, converts }) => [provider.id, share, converts ?? false]),
  ).toEqual([
    [1, 0.75, false],
    [2, 0.25, false],
    [3, 0, true],
  ]);
  // A tier without one of the own format converts.
  expect(second?.choices[0]?.converts).toBeUndefined();
  expect(second?.choices[0]?.share).toBe(1);
  // A provider that cannot be chosen displaces no other.
  const open = [1, 2].map((id) => health(id, { state: "OPEN" }));
  expect(selection(providers, open, asked, NOW)[0]?.choices[0]).toMatchObject({
    provider: { id: 3 },
    share: 1,
  });
});
