/** Compares two records field by field. */

export interface Line {
  /** `limits.daily` */
  path: string;
  kind: "added" | "removed" | "changed" | "same";
  /** As text; `undefined` if this side has none. */
  before?: string;
  after?: string;
}

/** Fields that change with every write and carry no information. */
const NOISE = new Set(["updatedAt"]);
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Every value by its path. Lists count as one value, and so does an empty record. */
function flat(value: unknown, path: string, into: Map<string, unknown>): Map<string, unknown> {
  if (isRecord(value) && Object.keys(value).length > 0) {
    for (const [name, inner] of Object.entries(value))
      flat(inner, path === "" ? name : `${path}.${name}`, into);
  } else if (value !== null || path !== "") into.set(path, value);
  return into;
}

/**
 * The lines in the order of the fields of `after`, then the others. `null`: there was no record.
 */
export function diff(before: unknown, after: unknown): Line[] {
  const [old, now] = [flat(before ?? null, "", new Map()), flat(after ?? null, "", new Map())];
  const paths = [...new Set([...now.keys(), ...old.keys()])].filter((path) => !NOISE.has(path));
  return paths.map((path) => {
    const was = old.has(path) ? text(old.get(path)) : undefined;
    const is = now.has(path) ? text(now.get(path)) : undefined;
    const kind =
      was === undefined ? "added" : is === undefined ? "removed" : was === is ? "same" : "changed";
    return { path, kind, before: was, after: is };
  });
}

/**
 * The changes of an entry. An operation on many records (a price table) has no record before it.
 */
export function kindOf(entry: {
  action: string;
  before: unknown;
  after: unknown;
}): "created" | "deleted" | "changed" | "none" {
  const [was, is] = [entry.before != null, entry.after != null];
  if (!was && !is) return "none";
  if (was && !is) return "deleted";
  return !was && /\.(create|add|upsert)/.test(entry.action) ? "created" : "changed";
}
