/** A provider's states over time, as the cells of a strip. */
import type { Schemas } from "@/api/client";

export type Looks = Schemas["LooksRecord"];

/** A time, and how often the provider was seen up and down in it. */
export interface Cell {
  from: number;
  up: number;
  down: number;
}

export const HALF_HOUR = 1_800_000;
export const DAY = 86_400_000;

/** The last `count` spans of `step` ms, the present one last. Days are those of UTC, as stored. */
export function cells(looks: Looks[], now: number, step: number, count: number): Cell[] {
  const last = Math.floor(now / step);
  const all = Array.from({ length: count }, (_, index) => ({
    from: (last - count + 1 + index) * step,
    up: 0,
    down: 0,
  }));
  for (const look of looks) {
    const cell = all[Math.floor(Date.parse(look.startsAt) / step) - last + count - 1];
    if (cell) {
      cell.up += look.up;
      cell.down += look.down;
    }
  }
  return all;
}

export type State = "unknown" | "good" | "warn" | "bad";

export function stateOf({ up, down }: Cell): State {
  if (up + down === 0) return "unknown";
  return down === 0 ? "good" : up === 0 ? "bad" : "warn";
}

/** The share of looks that were up, rounded down to 0.1 %: an outage never shows 100 %. */
export function shareUp(all: Cell[]): number | null {
  const up = all.reduce((sum, cell) => sum + cell.up, 0);
  const total = all.reduce((sum, cell) => sum + cell.up + cell.down, 0);
  return total === 0 ? null : Math.floor((up / total) * 1000) / 1000;
}
