import { screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { renderPart } from "@/test-page";
import { Anomalies, journalFault } from "./anomalies";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));

type Attention = Parameters<typeof Anomalies>[0]["attention"];

const JOURNAL: Attention["journal"] = {
  pendingRecords: 0,
  oldestAgeMs: 0,
  failing: false,
  diskBytes: 10,
  maxBytes: 100,
  heldRecords: 0,
  lostRecords: 0,
  setAside: 0,
};
const attention = (change: Partial<Attention>): Attention => ({
  nearLimits: [],
  moreNearLimits: 0,
  journal: JOURNAL,
  ...change,
});

beforeEach(() => {
  vi.mocked(call).mockImplementation((async (operation: string) => {
    if (operation.endsWith("getUsers")) return [{ id: 1, name: "ann", keys: [] }];
    return operation.endsWith("getUsageLogs") ? { summary: { unpriced: 0 } } : [];
  }) as never);
});

test("a journal that is emptied as it fills is no trouble; what is lost comes before what waits", () => {
  const fault = (change: Partial<Attention["journal"]>) => journalFault({ ...JOURNAL, ...change });
  expect(fault({})).toBeUndefined();
  expect(fault({ pendingRecords: 900, oldestAgeMs: 2_000 })).toBeUndefined();
  expect(fault({ pendingRecords: 1, oldestAgeMs: 60_000 })).toBe("waiting");
  expect(fault({ pendingRecords: 1, failing: true })).toBe("waiting");
  expect(fault({ diskBytes: 80, pendingRecords: 9, failing: true })).toBe("full");
  expect(fault({ setAside: 1 })).toBe("aside");
  expect(fault({ lostRecords: 1, heldRecords: 1, setAside: 1 })).toBe("lost");
});

test("all is well when nothing is amiss", async () => {
  await renderPart(<Anomalies attention={attention({})} />);
  expect(await screen.findByText(/Nothing needs/)).toBeTruthy();
});

test("limits are named with whose they are, and records that wait with how long", async () => {
  const near = { id: 3, name: "cli", userId: 1, window: "daily", limit: 10, resetAt: null };
  const nearLimits = [
    { ...near, kind: "key", current: 10 },
    { ...near, kind: "provider", id: 4, name: "upstream", userId: null, current: 8.5 },
  ];
  const journal = { ...JOURNAL, pendingRecords: 12, oldestAgeMs: 125_000 };
  await renderPart(<Anomalies attention={attention({ nearLimits, moreNearLimits: 2, journal })} />);
  expect(await screen.findByText("Key ann / cli has reached a limit")).toBeTruthy();
  expect(screen.getByText("Provider upstream is near a limit")).toBeTruthy();
  expect(screen.getByText("85% of the daily limit is used.")).toBeTruthy();
  expect(screen.getByText("2 more are near a limit")).toBeTruthy();
  expect(screen.getByText(/12 of them, the oldest for 2 min 5 s/)).toBeTruthy();
});
