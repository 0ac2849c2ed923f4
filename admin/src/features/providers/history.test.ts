import { expect, test } from "vitest";
import { cells, DAY, HALF_HOUR, shareUp, stateOf } from "./history";

const NOW = Date.parse("2026-06-01T12:10:00Z");
const look = (startsAt: string, up: number, down: number) => ({ startsAt, up, down });

test("looks are summed in their spans, and what is older is left out", () => {
  const all = cells(
    [
      look("2026-06-01T10:59:59Z", 7, 7),
      look("2026-06-01T11:00:00Z", 1, 0),
      look("2026-06-01T11:25:00Z", 0, 1),
      look("2026-06-01T12:05:00Z", 0, 1),
    ],
    NOW,
    HALF_HOUR,
    3,
  );
  expect(all.map(({ up, down }) => [up, down])).toEqual([
    [1, 1],
    [0, 0],
    [0, 1],
  ]);
  expect(new Date(all[2]?.from ?? 0).toISOString()).toBe("2026-06-01T12:00:00.000Z");
  expect(all.map(stateOf)).toEqual(["warn", "unknown", "bad"]);
});

test("days are those of UTC", () => {
  const all = cells([look("2026-06-01T00:00:00Z", 3, 0)], NOW, DAY, 90);
  expect(all).toHaveLength(90);
  expect(all.map(stateOf).lastIndexOf("good")).toBe(89);
});

test("an outage never shows 100 %, and nothing known shows no share", () => {
  const of = (up: number, down: number) => shareUp([{ from: 0, up, down }]);
  expect([of(9999, 1), of(5, 0), of(0, 3), of(0, 0)]).toEqual([0.999, 1, 0, null]);
});
