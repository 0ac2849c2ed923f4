/**
 * The log as a CSV file, which Excel, LibreOffice and pandas open as it is. Reads all pages of the
 * filter one after the other by cursor.
 */
import { call } from "@/api/client";
import type { LogFilters } from "@/api/queries";
import { BYTE_ORDER_MARK, cell } from "@/parts/csv";
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
  "notionalCostUsd",
  "costMultiplier",
  "parts",
  "cacheMiss",
  "estimated",
  "durationMs",
  "ttfbMs",
  "attempts",
  "userAgent",
  "clientAddress",
  "errorMessage",
] as const satisfies readonly (keyof Entry)[];

/** The parts of a cost in one cell: kind, model, USD. */
const inWords = (parts: Entry["parts"] | undefined) =>
  parts?.map((part) => `${part.kind} ${part.model ?? ""} ${part.costUsd ?? "?"}`).join("; ");

/** A cache miss in one cell: cause, message, tokens, USD. */
const missInWords = (miss: Entry["cacheMiss"] | undefined) =>
  miss && `${miss.cause} ${miss.message ?? ""}; ${miss.tokens} tokens; ${miss.costUsd}`;

const value = (entry: Entry, column: (typeof COLUMNS)[number]) => {
  if (column === "parts") return inWords(entry.parts);
  return column === "cacheMiss" ? missInWords(entry.cacheMiss) : entry[column];
};

export const row = (entry: Entry) => COLUMNS.map((column) => cell(value(entry, column))).join(",");

/** The largest number of rows in a file. */
export const MOST = 100_000;
const PAGE = 100;

/**
 * Reads all pages and returns the file's text. `onProgress` gets the number of rows read and the
 * total; `signal` ends it. It stops at `MOST` rows, and the caller reports that.
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
  const text = `${BYTE_ORDER_MARK}${lines.join("\r\n")}\r\n`;
  return { text, rows: lines.length - 1, cut: Boolean(cursor) };
}
