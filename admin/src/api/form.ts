/** Puts the gateway's faults at the fields of a form. */
import i18n from "i18next";
import type { FieldValues, Path, UseFormSetError } from "react-hook-form";
import { fieldLabel, plainName } from "@/i18n/field-label";
import { ApiError } from "./client";

/**
 * Maps the gateway's name of a field, or a code that is about one field, to the form's field where
 * they differ. It is a function if only the message identifies the field.
 */
export type Names<T extends FieldValues> =
  | Record<string, string>
  | ((fault: ApiError) => Path<T> | undefined);

/** The faults of a refusal: one, or all that the gateway found in the body. */
function faultsOf(refusal: ApiError): ApiError[] {
  const { faults } = refusal.params;
  if (!Array.isArray(faults)) return [refusal];
  return faults.map(
    (one: Record<string, unknown>) =>
      new ApiError(refusal.status, String(one.errorCode), String(one.error), one),
  );
}

/** The text of a fault that cannot be shown at its field, with the field's label in front. */
export function awayFromField(fault: ApiError): string {
  const label = fault.field === undefined ? undefined : fieldLabel(fault.field);
  return label === undefined
    ? fault.message || fault.code
    : i18n.t("ui.faultOf", { label, fault: fault.atField });
}

/**
 * A fault's text at its field, with the limits in the field's unit. `unit`: one unit of the field,
 * in units of the API.
 */
function inUnit({ atField, params }: ApiError, unit: number): string {
  return [params.min, params.max]
    .filter((limit) => typeof limit === "number")
    .reduce((text, limit) => text.replace(String(limit), plain(limit / unit)), atField);
}

/** At most four digits after the point. */
const plain = (value: number) => String(Number(value.toFixed(4)));

/** A fault at a field of the form. */
export interface Placed {
  name: string;
  fault: ApiError;
}

/**
 * Puts the faults of a refusal at the form's fields of those names, and all other faults at the
 * form (`root`). All input is kept. Returns the faults that were put at fields, because some of
 * these fields may not be rendered. `units`: of fields whose unit is not that of the API.
 */
export function showFault<T extends FieldValues>(
  error: unknown,
  setError: UseFormSetError<T>,
  has: (name: string) => boolean,
  names: Names<T> = {},
  units: Readonly<Record<string, number>> = {},
): Placed[] {
  const refusal = error instanceof ApiError ? error : new ApiError(0, "UNKNOWN", String(error));
  const placed: Placed[] = [];
  const others: string[] = [];
  for (const fault of faultsOf(refusal)) {
    // `updates.limitDailyUsd` is the form's `limitDailyUsd`, and `allowed_models[2]` is about
    // `allowed_models`.
    const said = fault.field === undefined ? undefined : plainName(fault.field);
    const ours =
      typeof names === "function" ? names(fault) : (names[fault.field ?? ""] ?? names[fault.code]);
    const named = ours ?? said;
    if (named !== undefined && has(named.split(".")[0] ?? named)) {
      setError(
        named as Path<T>,
        { type: fault.code, message: inUnit(fault, units[named] ?? 1) },
        { shouldFocus: placed.length === 0 },
      );
      placed.push({ name: named, fault });
    } else others.push(awayFromField(fault));
  }
  if (others.length > 0) setError("root", { type: refusal.code, message: others.join(" · ") });
  return placed;
}

/** The differences between two flat records: the body of a partial update. */
export function changes<T extends object>(before: T, after: T): Partial<T> {
  const changed: Partial<T> = {};
  for (const name of Object.keys(after) as (keyof T)[]) {
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) changed[name] = after[name];
  }
  return changed;
}
