/**
 * Translates the gateway's refusals, which are in English. Each other language has a catalogue: by
 * reason if a code has several, otherwise by code, with the parameters of either; a code has two
 * texts if it may be about another record, which the refusal names (`CODE.name`). The document on
 * record has every code and reason, and a test checks that none is missing. A refusal that a
 * catalogue does not have keeps the gateway's message.
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

/** Fills in `{{name}}`; `undefined` if there is no text, or a parameter is missing. */
function fill(text: string | undefined, params: Params): string | undefined {
  let whole = text !== undefined;
  const filled = text?.replace(/{{(\w+)}}/g, (_, name: string) => {
    const value = params[name];
    whole &&= value !== undefined;
    return Array.isArray(value) ? value.join(", ") : String(value);
  });
  return whole ? filled : undefined;
}

/** The catalogue's text of a reason. */
export function reasonInWords(
  { reasons }: Faults,
  reason: unknown,
  params: Params,
): string | undefined {
  return fill(typeof reason === "string" ? reasons[reason] : undefined, params);
}

/** The catalogue's text of a refusal, with its field in front. */
export function inWords(faults: Faults, code: string, params: Params, said: string): string {
  const start =
    typeof params.field === "string" && said.startsWith(`${params.field}: `)
      ? `${params.field}: `
      : "";
  const text =
    reasonInWords(faults, params.reason, params) ??
    fill(faults.codes[`${code}.name`], params) ??
    fill(faults.codes[code], { ...params, said: said.slice(start.length) });
  return text === undefined ? said : start + text;
}
