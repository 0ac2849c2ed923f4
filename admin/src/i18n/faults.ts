/**
 * The gateway's refusals in the person's language. The gateway speaks English; other languages have
 * a catalogue of their own: by the exact words where one code means several things, else by code
 * with its parameters. What no catalogue knows stays as the gateway said it.
 */
import type { Language } from "./languages";

export interface Faults {
  codes: Record<string, string>;
  words: Record<string, string>;
}

export const FAULTS: Partial<Record<Language, () => Promise<{ default: Faults }>>> = {
  zh: () => import("./faults.zh.json"),
};

type Params = Record<string, unknown>;

/** Fills in `{{name}}`; `undefined` when a parameter is missing. */
function fill(text: string, params: Params): string | undefined {
  let whole = true;
  const filled = text.replace(/{{(\w+)}}/g, (_, name: string) => {
    const value = params[name];
    whole &&= value !== undefined;
    return Array.isArray(value) ? value.join(", ") : String(value);
  });
  return whole ? filled : undefined;
}

/** A refusal by this catalogue; the field that it is about stays in front. */
export function inWords({ codes, words }: Faults, code: string, params: Params, said: string): string {
  const start = typeof params.field === "string" && said.startsWith(`${params.field}: `) ? `${params.field}: ` : "";
  const rest = said.slice(start.length);
  const text = words[rest] ?? fill(codes[code] ?? "", { ...params, said: rest });
  return text ? start + text : said;
}
