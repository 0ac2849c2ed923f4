/** Values of the API as the text of a form field, and back. Pure. */

/** The names in a comma-separated list. */
export const words = (text: string | null | undefined) =>
  (text ?? "")
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

export const textOf = (value: number | null | undefined) =>
  value === null || value === undefined ? "" : String(value);

/** Of a limit of which 0 means "no limit". */
export const boundOf = (value: number | null | undefined) => (value ? String(value) : "");

/**
 * The text, or `null` (no limit) if it is empty. The gateway refuses a text that is not a number.
 */
export const orNull = (text: string) => (text.trim() === "" ? null : text.trim());
