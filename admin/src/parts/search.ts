/** Reading filters from the address: what is not as it should be is left out, never an error. */

export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;

export const number = (value: unknown): number | undefined => {
  const read = typeof value === "string" ? Number(value) : value;
  return typeof read === "number" && Number.isSafeInteger(read) && read >= 0 ? read : undefined;
};

export const flag = (value: unknown): true | undefined => (value === true || value === "true" ? true : undefined);

export const oneOf = <T extends string>(value: unknown, words: readonly T[]): T | undefined =>
  words.find((word) => word === value);
