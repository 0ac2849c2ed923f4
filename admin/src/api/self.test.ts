import { beforeEach, expect, test, vi } from "vitest";
import { call } from "./client";
import { readSelf } from "./self";

vi.mock("./client", () => ({ call: vi.fn() }));
beforeEach(() => vi.mocked(call).mockReset());

test("users see what is spent of their limits, and when their keys were used", async () => {
  const keys = [
    { id: 7, lastUsedAt: "2026-11-26T20:00:00Z" },
    { id: 8, lastUsedAt: "2026-11-26T21:00:00Z" },
    { id: 9, lastUsedAt: null },
  ];
  const answers: Record<string, unknown> = {
    "auth/whoami": { user: { id: 3, name: "ann", keys: [{ id: 7 }] } },
    "actions/keys/getKeys": keys,
    "actions/users/getUserLimitUsage": { tightestLimit: { window: "daily", percent: 90 } },
  };
  vi.mocked(call).mockImplementation((async (operation: string) => answers[operation]) as never);
  const [ann] = await readSelf(new AbortController().signal);
  expect(ann).toMatchObject({ name: "ann", keys, lastUsedAt: "2026-11-26T21:00:00Z" });
  expect(ann?.tightestLimit).toMatchObject({ window: "daily", percent: 90 });
  answers["auth/whoami"] = { user: null };
  expect(await readSelf(new AbortController().signal)).toEqual([]);
});
