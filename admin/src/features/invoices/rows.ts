/** The lines of a comparison with their providers, and the same as a CSV file. */
import { BYTE_ORDER_MARK, cell } from "@/parts/csv";
import { type Line, type Reconciliation, TOKENS } from "./api";

export interface Row extends Line {
  providerId: number;
  providerName: string;
}

export const rowsOf = (data: Reconciliation | undefined): Row[] =>
  (data?.providers ?? []).flatMap(({ providerId, providerName, lines }) =>
    lines.map((line) => ({ ...line, providerId, providerName })),
  );

const SIDES = ["vendor", "ledger", "difference"] as const;
const FIGURES = [...TOKENS, "costUsd"] as const;

const HEAD = [
  "day",
  "providerName",
  "model",
  "part",
  "cause",
  "requests",
  "failedRequests",
  "unpricedRequests",
] as const;

export function csvOf(rows: Row[]): string {
  const figures = SIDES.flatMap((side) => FIGURES.map((name) => [side, name] as const));
  const head = [...HEAD, ...figures.map(([side, name]) => `${side}.${name}`), "apiKeyIds"];
  const line = (row: Row) => [
    ...HEAD.map((name) => cell(row[name])),
    ...figures.map(([side, name]) => cell(row[side][name])),
    cell(row.apiKeyIds.join(" ")),
  ];
  const lines = [head, ...rows.map(line)].map((cells) => cells.join(","));
  return `${BYTE_ORDER_MARK}${lines.join("\r\n")}\r\n`;
}
