/**
 * The gateway's refusals in the person's language. The gateway speaks English; other languages have
 * a catalogue of their own: by the reason where one code has several, else by code, with the
 * parameters of either. Every code and reason is in the document on record, so a test sees to it
 * that none lacks. What an older catalogue does not know stays as the gateway said it.
 */
import type { Language } from "./languages";

export interface Faults {
  codes: Record<string, string>;
  reasons: Record<string, string>;
}

export const FAULTS: Partial<Record<Language, () => Promise<{ default: Faults }>>> = {
  zh: () => import("./faults.zh.json"),
};

type Params = Record<string, unknown>;

/** Fills in `{{name}}`; `undefined` when there is no text, or a parameter is missing. */
function fill(text: string | undefined, params: Params): string | undefined {
  let whole = text !== undefined;
  const filled = text?.replace(/{{(\w+)}}/g, (_, name: string) => {
    const value = params[name];
    whole &&= value !== undefined;
    return Array.isArray(value) ? value.join(", ") : String(value);
  });
  return whole ? filled : undefined;
}

/** A reason by this catalogue. */
export function reasonInWords(
  { reasons }: Faults,
  reason: unknown,
  params: Params,
): string | undefined {
  return fill(typeof reason === "string" ? reasons[reason] : undefined, params);
}

/** A refusal by this catalogue; the field that it is about stays in front. */
export function inWords(faults: Faults, code: string, params: Params, said: string): string {
  const start =
    typeof params.field === "string" && said.startsWith(`${params.field}: `)
      ? `${params.field}: `
      : "";
  const text =
    reasonInWords(faults, params.reason, params) ??
    fill(faults.codes[code], { ...params, said: said.slice(start.length) });
  return text === undefined ? said : start + text;
}
