import { beforeEach, expect, test, vi } from "vitest";
import { call, type Schemas } from "./client";
import { readSelf, tightest } from "./self";

vi.mock("./client", () => ({ call: vi.fn() }));

type Usage = Schemas["UserLimitUsage"];
const cost = (current: number, limit: number | null) => ({
  current,
  reserved: 0,
  limit,
  resetAt: null,
});
const usage = (windows: Partial<Record<keyof Usage, ReturnType<typeof cost>>>) => ({
  ...Object.fromEntries(
    ["cost5h", "costDaily", "costWeekly", "costMonthly", "costTotal"].map((name) => [
      name,
      cost(1, null),
    ]),
  ),
  ...windows,
});

test("the tightest limit is that of the largest share, and of equal ones the shorter window", () => {
  const of = (windows: Parameters<typeof usage>[0]) => tightest(usage(windows) as unknown as Usage);
  expect(of({})).toBe(null);
  const both = { costDaily: cost(1, 4), costMonthly: cost(5, 10) };
  expect(of(both)).toMatchObject({ window: "monthly", percent: 50, current: 5, limit: 10 });
  expect(of({ cost5h: cost(2, 4), costTotal: cost(5, 10) })?.window).toBe("5h");
  expect(of({ costWeekly: cost(0, 0) })).toMatchObject({ window: "weekly", percent: 100 });
});

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
    "actions/users/getUserLimitUsage": usage({ costDaily: cost(4.5, 5) }),
  };
  vi.mocked(call).mockImplementation((async (operation: string) => answers[operation]) as never);
  const [ann] = await readSelf(new AbortController().signal);
  expect(ann).toMatchObject({ name: "ann", keys, lastUsedAt: "2026-11-26T21:00:00Z" });
  expect(ann?.tightestLimit).toMatchObject({ window: "daily", percent: 90 });
  answers["auth/whoami"] = { user: null };
  expect(await readSelf(new AbortController().signal)).toEqual([]);
});
