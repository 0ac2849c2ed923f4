/** Failures of the server, put where the person can mend them. */
import type { FieldValues, Path, UseFormSetError } from "react-hook-form";
import { ApiError } from "./client";

/**
 * The server's name of a field, or a code that is about one field alone → the form's field, where they differ. A function where
 * only the words tell.
 */
export type Names<T extends FieldValues> = Record<string, string> | ((fault: ApiError) => Path<T> | undefined);

/**
 * Puts a refusal at its field when the form has one of that name, and otherwise at the form as a whole (`root`). Nothing that
 * was typed is lost. Gives the words where they stand at a field.
 */
export function showFault<T extends FieldValues>(
  error: unknown,
  setError: UseFormSetError<T>,
  has: (name: string) => boolean,
  names: Names<T> = {},
): string | undefined {
  const fault = error instanceof ApiError ? error : new ApiError(0, "UNKNOWN", String(error));
  const said = fault.field?.replace(/^updates\./, "");
  const ours = typeof names === "function" ? names(fault) : (names[fault.field ?? ""] ?? names[fault.code]);
  const named = ours ?? said;
  if (named !== undefined && has(named.split(".")[0] ?? named)) {
    setError(named as Path<T>, { type: fault.code, message: fault.atField }, { shouldFocus: true });
    return fault.message;
  }
  setError("root", { type: fault.code, message: fault.message || fault.code });
}

/** What differs between two flat records: the body of a partial update. */
export function changes<T extends Record<string, unknown>>(before: T, after: T): Partial<T> {
  const changed: Partial<T> = {};
  for (const name of Object.keys(after) as (keyof T)[]) {
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) changed[name] = after[name];
  }
  return changed;
}
