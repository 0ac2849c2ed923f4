/** The lock file: whole, so that `npm ci` takes it, and the same for whoever reads it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Entry {
  version?: string;
  resolved?: string;
  integrity?: string;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const packages = (
  JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, Entry> }
).packages;

/** Where a package finds what it depends on: in its own folder, or in one above it. */
function found(from: string, name: string): Entry | undefined {
  for (
    let folder = from;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))
  ) {
    const entry = packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`];
    if (entry !== undefined || folder === "") return entry;
  }
}

test("it names every optional module of every platform", () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => found(path, name) === undefined),
  );
  expect(missing).toEqual([]);
});

test("it names no host", () => {
  const hosts = Object.entries(packages).filter(([, { resolved }]) => resolved !== undefined);
  expect(hosts.map(([path]) => path)).toEqual([]);
});

test("whatever is installed where the gateway runs has a checksum", () => {
  const runsHere = ({ os, cpu, libc }: Entry) =>
    (os?.includes("linux") ?? true) &&
    (libc?.includes("glibc") ?? true) &&
    !cpu?.includes("wasm32") &&
    !cpu?.includes("arm");
  const without = Object.entries(packages).filter(
    ([path, entry]) => path && runsHere(entry) && !entry.integrity,
  );
  expect(without.map(([path]) => path)).toEqual([]);
});
