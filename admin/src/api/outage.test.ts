import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, call, whenDatabaseAway } from "./client";
import { Outages } from "./outage";

vi.mock("./client", async (original) => ({
  ...(await original<object>()),
  call: vi.fn(),
  whenDatabaseAway: vi.fn(),
}));

const SINCE = "2026-06-01T12:00:00Z";
const away = new ApiError(503, "OPERATION_FAILED", "away", {
  reason: "database_unreachable",
  since: SINCE,
});
const onBack = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  onBack.mockReset();
  vi.mocked(call).mockReset();
});
afterEach(() => vi.useRealTimers());

function started() {
  const outages = new Outages(onBack);
  outages.start();
  const refused = vi.mocked(whenDatabaseAway).mock.lastCall?.[0];
  return { outages, refused: (error: ApiError) => refused?.(error) };
}

test("a refused request reports an outage, which ends with the first accepted one", async () => {
  const { outages, refused } = started();
  refused(away);
  expect(outages.state()).toEqual({
    what: "database",
    since: Date.parse(SINCE),
    asOf: Date.parse(SINCE),
  });
  vi.mocked(call).mockRejectedValue(away);
  await vi.advanceTimersByTimeAsync(21_000);
  expect(call).toHaveBeenCalledTimes(4);
  expect(outages.state()?.what).toBe("database");
  vi.mocked(call).mockResolvedValue(undefined as never);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(outages.state()).toBeUndefined();
  expect(onBack).toHaveBeenCalledOnce();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(call).toHaveBeenCalledTimes(5);
});

test("while the stream says that the database is away, no other answer ends it", async () => {
  const { outages } = started();
  vi.mocked(call).mockResolvedValue(undefined as never);
  outages.status({
    databaseUp: false,
    databaseDownSince: SINCE,
    figuresAt: "2026-06-01T11:59:58Z",
  });
  expect(outages.state()?.asOf).toBe(Date.parse("2026-06-01T11:59:58Z"));
  await vi.advanceTimersByTimeAsync(11_000);
  expect(outages.state()).toBeDefined();
  outages.status({ databaseUp: true });
  expect(outages.state()).toBeUndefined();
  expect(onBack).toHaveBeenCalledOnce();
});

test("a short loss of the stream is not an outage; a silent gateway is, until the stream is back", async () => {
  const { outages } = started();
  outages.lost();
  outages.live();
  vi.mocked(call).mockRejectedValue(new ApiError(0, "NETWORK", ""));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(outages.state()).toBeUndefined();
  const lost = Date.now();
  outages.lost();
  await vi.advanceTimersByTimeAsync(4_000);
  expect(outages.state()).toEqual({ what: "gateway", since: lost, asOf: lost });
  outages.live();
  expect(outages.state()).toBeUndefined();
  expect(onBack).toHaveBeenCalledOnce();
});

test("a stream that is refused for want of the database says so", async () => {
  const { outages, refused } = started();
  vi.mocked(call).mockImplementation(async () => {
    refused(away);
    throw away;
  });
  outages.lost();
  await vi.advanceTimersByTimeAsync(4_000);
  expect(outages.state()?.what).toBe("database");
});
