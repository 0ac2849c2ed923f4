/** The README's pictures show texts that the UI still has: see `tests/pictures.mjs`. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";

const FOLDER = "../docs/images";
const BYTES_AT_MOST = 200_000;
const read = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"));

/** The catalogue's text of this key, or undefined. */
function text(catalogue: unknown, key: string): unknown {
  return key
    .split(".")
    .reduce<unknown>(
      (tree, name) => (tree as Record<string, unknown> | undefined)?.[name],
      catalogue,
    );
}

test("the pictures of the docs show the UI's present texts", () => {
  const shown = read(`${FOLDER}/texts.json`) as Record<string, string>;
  expect(Object.keys(shown).length).toBeGreaterThan(30);
  const catalogue = read("src/i18n/en.json");
  const changed = Object.entries(shown).filter(([key, value]) => text(catalogue, key) !== value);
  const told = changed.map(
    ([key, value]) => `${key}: the picture says "${value}", the UI "${text(catalogue, key)}"`,
  );
  expect(
    told,
    "docs/images is older than the UI's texts: run `npm run shots pictures`, look at them, commit them",
  ).toEqual([]);
});

test("the pictures are there, in both themes, and small enough for a README", () => {
  for (const name of ["overview", "decisions"]) {
    for (const theme of ["light", "dark"])
      expect(existsSync(`${FOLDER}/${name}-${theme}.webp`)).toBe(true);
  }
  const large = readdirSync(FOLDER).filter(
    (name) => statSync(`${FOLDER}/${name}`).size > BYTES_AT_MOST,
  );
  expect(large).toEqual([]);
});
