// Runs after the build: adds the files of the API reference, compresses files, and checks the size
// of a first visit.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { copyReference } from "./reference.mjs";

const dist = new URL("../dist", import.meta.url).pathname;
const FIRST_LOAD = 350 * 1024;

const files = (folder) =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });

await copyReference(join(dist, "reference"));

const gzipped = new Map();
/** Files of which the gateway gets the compressed forms only. */
const twinned = [];
for (const path of files(dist).filter((path) => /\.(js|css|html|svg|json)$/.test(path))) {
  const bytes = readFileSync(path);
  const gz = gzipSync(bytes, { level: 9 });
  gzipped.set(path, gz.length);
  if (bytes.length < 1024) continue;
  writeFileSync(`${path}.gz`, gz);
  writeFileSync(
    `${path}.br`,
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  );
  twinned.push(path);
}

// The files of a first visit: those that index.html names, the modules that these import at once,
// and the one font file that every page uses.
const index = readFileSync(join(dist, "index.html"), "utf8");
const first = new Set();
const take = (path) => {
  if (first.has(path) || !gzipped.has(path)) return;
  first.add(path);
  if (!path.endsWith(".js")) return;
  const text = readFileSync(path, "utf8");
  for (const [, name] of text.matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g))
    take(join(dist, "assets", name));
};
for (const [, name] of index.matchAll(/(?:src|href)="\/([^"]+)"/g)) take(join(dist, name));
const fonts = files(dist).filter((path) => /inter-latin-wght-normal.*\.woff2$/.test(path));
const total =
  [...first].reduce((sum, path) => sum + gzipped.get(path), 0) +
  fonts.reduce((sum, path) => sum + statSync(path).size, 0);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
console.log(
  `first load: ${kib(total)} compressed, in ${first.size} files and a font (bound: ${kib(FIRST_LOAD)})`,
);
if (total > FIRST_LOAD) {
  for (const path of first)
    console.error(`  ${kib(gzipped.get(path))}  ${path.slice(dist.length)}`);
  process.exit(1);
}
for (const path of twinned) rmSync(path);
