/**
 * Search parameters: the values that a page's address may contain. An invalid value is ignored and
 * never an error. `zod/mini` adds 6 KiB to the first load where `zod` adds 23, and it does not
 * compile its checks with `new Function`, which the content security policy refuses.
 */
import * as z from "zod/mini";

/** This value, or `undefined`. */
const orNone = <T extends z.ZodMiniType>(type: T) => z.catch(z.optional(type), undefined);

/** A text; numbers too, because the address does not distinguish `q=7` from `q="7"`. */
export const text = orNone(
  z.union([z.string().check(z.minLength(1)), z.pipe(z.number(), z.transform(String))]),
);

/** A text that may be empty. */
export const anyText = orNone(z.string());

/** A calendar day (`2026-11-21`) or a moment in ISO form. */
export const day = orNone(
  z
    .string()
    .check(z.refine((text) => /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text)))),
);

/** A whole number from 0 on. */
export const number = orNone(
  z.pipe(
    z.union([z.number(), z.pipe(z.string(), z.transform(Number))]),
    z.int().check(z.nonnegative()),
  ),
);

/** Set, or absent. */
export const flag = orNone(
  z.union([
    z.literal(true),
    z.pipe(
      z.literal("true"),
      z.transform((): true => true),
    ),
  ]),
);

/** One of these words. */
export const oneOf = <const T extends readonly string[]>(words: T) => orNone(z.enum(words));

/** A page's search parameters, in the form of its route's `validateSearch`. */
export function searchOf<const T extends z.core.$ZodShape>(shape: T) {
  const parameters = z.object(shape);
  return (search: Record<string, unknown>): z.output<typeof parameters> => parameters.parse(search);
}
