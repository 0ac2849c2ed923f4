/** The log as a CSV file: all pages of what is filtered, read one after the other by cursor. */
import { call } from "@/api/client";
import type { LogFilters } from "@/api/queries";
import type { Entry } from "@/parts/request/entry";

export const COLUMNS = [
  "createdAt",
  "requestId",
  "userName",
  "keyName",
  "sessionId",
  "model",
  "upstreamModel",
  "providerName",
  "clientFormat",
  "providerFormat",
  "endpoint",
  "streamed",
  "statusCode",
  "outcome",
  "inputTokens",
  "outputTokens",
  "cacheReadTokens",
  "cacheCreation5mTokens",
  "cacheCreation1hTokens",
  "reasoningTokens",
  "costUsd",
  "costMultiplier",
  "estimated",
  "durationMs",
  "ttfbMs",
  "attempts",
  "userAgent",
  "clientAddress",
  "errorMessage",
] as const satisfies readonly (keyof Entry)[];

/** One cell. A text that a spreadsheet would run as a formula gets an apostrophe in front. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const row = (entry: Entry) => COLUMNS.map((column) => cell(entry[column])).join(",");

/** No file is longer than this. */
export const MOST = 100_000;
const PAGE = 100;

/**
 * Reads all pages and gives the file's text. `onProgress` hears how many rows are read of how many;
 * `signal` ends it. Above `MOST` rows it stops there: the caller says so.
 */
export async function exportCsv(
  filters: LogFilters,
  onProgress: (done: number, total: number) => void,
  signal: AbortSignal,
): Promise<{ text: string; rows: number; cut: boolean }> {
  const lines = [COLUMNS.join(",")];
  let cursor: string | null | undefined;
  let total = 0;
  do {
    const ask = { ...filters, pageSize: PAGE, ...(cursor ? { cursor } : {}) };
    const page = await call("actions/usage-logs/getUsageLogs", ask, signal);
    lines.push(...page.logs.map(row));
    total = page.total;
    cursor = page.nextCursor;
    onProgress(lines.length - 1, Math.min(total, MOST));
  } while (cursor && lines.length <= MOST);
  return { text: `${lines.join("\r\n")}\r\n`, rows: lines.length - 1, cut: Boolean(cursor) };
}

/** Hands a text to the browser as a file. */
export function download(text: string, name: string) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
