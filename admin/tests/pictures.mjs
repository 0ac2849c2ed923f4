/**
 * The pictures of the README and the docs, in `docs/images/`: a team's day of traffic, in both
 * themes. `npm run shots` makes them after its own pictures, `npm run shots pictures` makes only
 * them. libfaketime (Debian: `faketime`) moves the gateway's clock back, hour by hour, so that the
 * charts have a curve. `texts.json` beside the pictures records the UI texts that they show;
 * `src/pictures.test.ts` fails when one of those has changed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { logIn, openPage } from "./browser.mjs";
import { startGateway } from "./gateway.mjs";
import { open, words } from "./pages.mjs";

const FOLDER = new URL("../../docs/images/", import.meta.url).pathname;
const HOURS = 47;
/** The catalogue's sections that these pages use; a word such as "Cost" is in others too. */
const SECTIONS = ["app", "live", "logs", "nav", "overview", "ui"];
/** GitHub shows pictures with at most about 900 pixels of width; twice that stays sharp. */
const VIEWPORT = { width: 1280, height: 800 };
const BYTES_AT_MOST = 200_000;

/** The library that changes a program's clock; undefined if it is not installed. */
function clockMover() {
  const places = [
    `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime`,
    "/usr/lib/faketime",
  ];
  return places.map((place) => `${place}/libfaketimeMT.so.1`).find(existsSync);
}

const back = (library, hours) => ({
  LD_PRELOAD: library,
  FAKETIME: hours === 0 ? "+0" : `-${hours}h`,
  DONT_FAKE_MONOTONIC: "1",
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
});

/** The traffic of each past hour: two peaks of a working day. */
const LOAD = [9, 12, 14, 11, 8, 10, 13, 12, 7, 4, 2, 1, 0, 0, 1, 0, 1, 2, 3, 5, 8, 11, 13, 10];

async function furnish({ action, mockUrl }) {
  const provider = (fields) => action("providers/addProvider", { url: mockUrl, ...fields });
  await provider({
    name: "anthropic-main",
    provider_type: "native",
    key: "key-anthropic-main-01",
    limit_daily_usd: 400,
  });
  await provider({
    name: "anthropic-eu",
    provider_type: "native",
    key: "key-anthropic-eu-0001",
    priority: 1,
  });
  await provider({
    name: "openai",
    provider_type: "responses",
    key: "key-openai-0000000001",
    priority: 2,
    allowed_models: ["gpt-5*"],
  });
  await provider({
    name: "gemini",
    provider_type: "alt-cli",
    key: "key-gemini-0000000001",
    priority: 3,
    allowed_models: ["gemini-*"],
  });
  const people = [];
  for (const [name, tags, limitDailyUsd] of [
    ["Ada Novak", ["platform"], 60],
    ["Ben Okafor", ["mobile"], 40],
    ["Chen Wei", ["research"], 80],
    ["Dora Lindt", ["data"], 40],
  ]) {
    people.push(await action("users/addUser", { name, tags, limitDailyUsd }));
  }
  return people.map((person) => person.defaultKey.key);
}

/** One hour of the team's requests, at once: large contexts, mostly from the provider's cache. */
async function hour({ ask, direct }, keys, back) {
  const many = LOAD[back % LOAD.length];
  const usage = [];
  for (let index = 0; index < many; index++) {
    const size = 1 + ((index * 7 + back * 3) % 5);
    const tokens = {
      input: 1_800 * size,
      output: 900 * size,
      cache_read: 42_000 * size,
      cache_write_5m: 3_000 * size,
    };
    usage.push({ usage: tokens, first_byte_ms: 240 + 90 * size });
  }
  await direct("script?key=key-anthropic-main-01", usage);
  const requests = usage.map((_, index) => {
    const model = ["claude-sonnet-4-5", "claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"][
      (index + back) % 4
    ];
    const who = keys[(index * index + back) % keys.length];
    return ask(who, model, `Request ${index} of hour ${back}`, { stream: true });
  });
  await Promise.all(requests);
}

/**
 * Fails at the first provider and succeeds at the second: the request whose decisions are shown.
 */
async function failover({ ask, direct }, keys) {
  const refused = { status: 529, error: { type: "overloaded_error", message: "Overloaded" } };
  await direct("script?key=key-anthropic-main-01", [refused]);
  await direct("script?key=key-anthropic-eu-0001", [
    {
      usage: { input: 2_140, output: 1_312, cache_read: 61_400, cache_write_5m: 4_800 },
      first_byte_ms: 420,
    },
  ]);
  await ask(keys[2], "claude-opus-4-5", "Refactor the retry loop", { stream: true });
}

/** Every text of the catalogue that is a separate line on the page, by its key. */
async function shown(page) {
  // biome-ignore lint/performance/useDomNodeTextContent: the lines that a user sees
  const text = await page.locator("body").innerText();
  const lines = new Set(text.split("\n").map((line) => line.trim()));
  const found = {};
  const walk = (tree, path) => {
    for (const [name, value] of Object.entries(tree)) {
      const key = `${path}.${name}`;
      if (typeof value !== "string") walk(value, key);
      else if (lines.has(value)) found[key] = value;
    }
  };
  const catalogue = JSON.parse(
    readFileSync(new URL("../src/i18n/en.json", import.meta.url), "utf8"),
  );
  for (const section of SECTIONS) walk(catalogue[section], section);
  return found;
}

/** WebP through the browser's own encoder: a quarter of the size of a PNG. */
async function save(page, name) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 88 });
  const bytes = Buffer.from(data, "base64");
  if (bytes.length > BYTES_AT_MOST)
    throw new Error(`${name} has ${bytes.length} bytes, more than ${BYTES_AT_MOST}`);
  writeFileSync(`${FOLDER}${name}.webp`, bytes);
  if (process.env.PICTURES_AS_PNG)
    await page.screenshot({ path: `${process.env.PICTURES_AS_PNG}/${name}.png` });
}

export async function makePictures(browser) {
  const library = clockMover();
  if (!library)
    throw new Error(
      "the pictures of docs/images need libfaketime: install Debian's package `faketime`",
    );
  mkdirSync(FOLDER, { recursive: true });
  const t = words("en");
  const gateway = await startGateway({ TZ: "UTC", ...back(library, HOURS) });
  try {
    const keys = await furnish(gateway);
    for (let hours = HOURS; hours >= 0; hours--) {
      await hour(gateway, keys, hours);
      await gateway.halt();
      await gateway.again(back(library, Math.max(hours - 1, 0)));
    }
    const texts = {};
    const looks = async (name, one) => {
      for (const colorScheme of ["light", "dark"]) {
        const options = { colorScheme, viewport: VIEWPORT, deviceScaleFactor: 1.5 };
        const { context, page, faults } = await openPage(browser, gateway, options);
        await page.addInitScript(() => localStorage.setItem("tollgate.language", "en"));
        await logIn(page);
        await open(page, t, one);
        await page.mouse.move(0, 0);
        await page.waitForTimeout(800);
        await save(page, `${name}-${colorScheme}`);
        Object.assign(texts, await shown(page));
        if (faults.length > 0) throw new Error(faults.join("\n"));
        await context.close();
      }
    };
    await looks("overview", { path: "/dashboard?by=model" });
    await failover(gateway, keys);
    await looks("decisions", {
      path: "/logs",
      open: async (page, t) => {
        await page.locator("tbody tr[data-row]").first().click();
        await page.getByText(t("logs.decisions"), { exact: true }).first().waitFor();
      },
    });
    const sorted = Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(`${FOLDER}texts.json`, `${JSON.stringify(sorted, null, 2)}\n`);
    console.log(readdirSync(FOLDER).join(" "));
  } finally {
    await gateway.stop();
  }
}
