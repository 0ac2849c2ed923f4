/**
 * Every page in both themes and two widths: axe finds no serious fault, the console is quiet, the
 * policy holds, nothing scrolls sideways. A page is loaded once and then looked at four times. The
 * theme changes colours only, so the second theme of a width is looked at for its contrasts.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { furnish } from "./furnish.mjs";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";
import { EMPTY, open, PAGES, words } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const t = words();
let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser?.close());

const LOOKS = [
  { width: 1440, colorScheme: "light", rules: undefined },
  { width: 1440, colorScheme: "dark", rules: ["color-contrast"] },
  { width: 390, colorScheme: "dark", rules: undefined },
  { width: 390, colorScheme: "light", rules: ["color-contrast"] },
];

/** What is seriously wrong with a page as it is now, in each of the looks. */
async function look(page, { name, narrow, wide }) {
  const found = [];
  await page.evaluate(axe);
  for (const { width, colorScheme, rules } of LOOKS) {
    if ((narrow && width > 390) || (wide && width < 1440)) continue;
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme });
    const faults = await page.evaluate(async (only) => {
      const run = only === undefined ? {} : { runOnly: { type: "rule", values: only } };
      // What lies over a page is looked at by itself: the page has been, or will be.
      const over = [...document.querySelectorAll("[role=dialog], [role=menu]")];
      const { violations } = await window.axe.run(over.length > 0 ? over : document, {
        resultTypes: ["violations"],
        ...run,
      });
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      const where = (nodes) => nodes.map((node) => node.target.join(" ")).slice(0, 3);
      const sideways = document.documentElement.scrollWidth - innerWidth;
      return [
        ...serious.map(({ id, impact, nodes }) => `${impact} ${id}: ${where(nodes).join(" | ")}`),
        ...(sideways > 0 ? [`${sideways} pixels too wide`] : []),
      ];
    }, rules);
    found.push(...faults.map((fault) => `${name}, ${colorScheme}, ${width}: ${fault}`));
  }
  return found;
}

/** Without transitions: colours and places are the final ones at once. */
async function still(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Animation.enable");
  await devtools.send("Animation.setPlaybackRate", { playbackRate: 10_000 });
}

test("every page of a gateway that is in use", async (run) => {
  const gateway = await startGateway({ STORE_SESSION_MESSAGES: "true" });
  run.after(gateway.stop);
  const people = await furnish(gateway);
  const { context, page, faults } = await openPage(browser, gateway, { reducedMotion: "reduce" });
  await still(page);
  const found = [];
  await page.goto(`${gateway.url}/login`);
  await page.getByRole("button", { name: t("login.submit") }).waitFor();
  found.push(...(await look(page, { name: "login" })));
  await logIn(page, gateway);
  let seenWith;
  for (const one of PAGES(people)) {
    if (one.key !== seenWith) {
      await context.clearCookies();
      await logIn(page, gateway, one.key);
      seenWith = one.key;
    }
    await page.setViewportSize({ width: one.narrow ? 390 : 1440, height: 844 });
    await open(page, gateway, t, one).catch((error) => {
      throw new Error(`${one.name}: ${error.message}`);
    });
    found.push(...(await look(page, one)));
  }
  await context.close();
  assert.deepEqual([...found, ...faults], []);
});

test("every page of an empty gateway", async (run) => {
  const gateway = await startGateway();
  run.after(gateway.stop);
  const { context, page, faults } = await openPage(browser, gateway, { reducedMotion: "reduce" });
  await still(page);
  await logIn(page, gateway);
  const found = [];
  for (const name of EMPTY) {
    await open(page, gateway, t, { path: `/${name}` });
    found.push(...(await look(page, { name: `empty ${name}` })));
  }
  await context.close();
  assert.deepEqual([...found, ...faults], []);
});
