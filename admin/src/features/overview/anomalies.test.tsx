import { screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { renderPart } from "@/test-page";
import { Anomalies } from "./anomalies";

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
  problems: [],
  journal: JOURNAL,
  ...change,
});

beforeEach(() => {
  vi.mocked(call).mockImplementation((async (operation: string) => {
    if (operation.endsWith("getUsers")) return [{ id: 1, name: "ann", keys: [] }];
    return operation.endsWith("getUsageLogs") ? { summary: { unpriced: 0 } } : [];
  }) as never);
});

test("all is well when nothing is amiss", async () => {
  await renderPart(<Anomalies attention={attention({})} />);
  expect(await screen.findByText(/Nothing needs/)).toBeTruthy();
});

const problem = (kind: string, severity: string, params: object): Attention["problems"][number] =>
  ({ kind, severity, since: null, message: `the gateway's words for ${kind}`, params }) as never;

test("problems are in the gateway's order, each with its cause, and before limits", async () => {
  const lastError = {
    kind: "connect",
    status: null,
    message: "Connection refused (os error 111)",
    at: "2026-06-01T12:00:00Z",
  };
  const problems = [
    problem("journal_full", "critical", { diskBytes: 10, maxBytes: 10 }),
    problem("database_unreachable", "error", { pendingRecords: 1200 }),
    problem("provider_failing", "error", {
      providerId: 7,
      providerName: "upstream",
      lastError,
      recentAttempts: 30,
      recentFailures: 30,
    }),
    problem("provider_without_credential", "error", { providerId: 9, providerName: "lost" }),
    problem("provider_switched_off", "warning", {
      providerId: 8,
      providerName: "spare",
      lastError: { ...lastError, kind: "status", status: 502, message: "502 bad gateway" },
      failedProbes: 4,
    }),
    problem("reload_refused", "warning", { faults: "limits.money_status: must be 429 or 402." }),
    problem("something_new", "warning", {}),
  ];
  const nearLimits = [
    {
      kind: "key",
      id: 3,
      name: "cli",
      userId: 1,
      window: "daily",
      current: 10,
      limit: 10,
      resetAt: null,
    },
  ];
  await renderPart(<Anomalies attention={attention({ problems, nearLimits })} />);
  await screen.findByText("Key ann / cli has reached a limit");
  const shown = screen.getAllByRole("listitem").map((item) => item.textContent ?? "");
  const order = [
    "All requests are refused: the disk is full",
    "The database cannot be reached",
    "upstream is failing",
    "lost gets no requests: its credential is missing",
    "spare was disabled by the gateway",
    "The changed configuration was refused",
    "the gateway's words for something_new",
    "Key ann / cli has reached a limit",
  ];
  expect(shown.map((text, index) => text.startsWith(order[index] ?? "?"))).toEqual(
    order.map(() => true),
  );
  expect(shown[1]).toContain("1,200");
  expect(shown[2]).toContain(
    "the connection was refused or failed — Connection refused (os error 111)",
  );
  expect(shown[2]).toContain("30 of 30 attempts failed in the past 5 minutes.");
  expect(shown[3]).toContain("enter it again");
  expect(shown[4]).toContain("Its circuit was probed in vain: 4 failed in a row.");
  // The message begins with the status, which is not shown twice.
  expect(shown[4]).toContain("it answered with status 502 — bad gateway");
  expect(shown[5]).toContain("limits.money_status: must be 429 or 402.");
});

test("limits are named with whose they are", async () => {
  const near = { id: 3, name: "cli", userId: 1, window: "daily", limit: 10, resetAt: null };
  const nearLimits = [
    { ...near, kind: "key", current: 10 },
    { ...near, kind: "provider", id: 4, name: "upstream", userId: null, current: 8.5 },
    { ...near, kind: "provider", id: 5, name: "far", userId: null, current: 4636.7 },
  ];
  await renderPart(<Anomalies attention={attention({ nearLimits, moreNearLimits: 2 })} />);
  expect(await screen.findByText("Key ann / cli has reached a limit")).toBeTruthy();
  expect(screen.getByText("Provider upstream is near a limit")).toBeTruthy();
  expect(screen.getByText("85% of the daily limit is used.")).toBeTruthy();
  expect(screen.getByText("464× the daily limit is used.")).toBeTruthy();
  expect(screen.getByText("2 more are near a limit")).toBeTruthy();
});
