/** Files of comma-separated values, which Excel, LibreOffice and pandas open as they are. */

/** Without it, Excel reads the file in the code page of its system. */
export const BYTE_ORDER_MARK = "\ufeff";

/**
 * One cell, by RFC 4180. A text that a spreadsheet would run as a formula gets an apostrophe in
 * front, also after blanks, which some remove, and with full-width signs. NUL, which readers of CSV
 * do not take, is replaced.
 */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = value.replaceAll("\0", "\ufffd");
  const safe = /^(?:\s*[=+\-@＝＋－＠]|[\t\r\n])/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Offers a text as a file download. */
export function download(text: string, name: string, type = "text/csv") {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
