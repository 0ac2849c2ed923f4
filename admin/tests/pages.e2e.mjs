/**
 * Every page in both themes and two widths: axe finds no serious fault, the console is empty, the
 * policy holds, and nothing scrolls sideways. A page is loaded once and checked in four looks. The
 * theme changes only colours, so only the contrasts are checked in the second theme of a width.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { authenticate, openPage } from "./browser.mjs";
import { test as base, expect } from "./fixtures.mjs";
import { furnish } from "./furnish.mjs";
import { startGateway } from "./gateway.mjs";
import { EMPTY, LOGIN, open, PAGES, words } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const t = words();

/** A gateway and a page that all tests of a worker share: no view changes another one's data. */
const shared = (settings, fill) => [
  async ({ browser }, use) => {
    const gateway = await startGateway(settings);
    const people = await fill?.(gateway);
    const opened = await openPage(browser, gateway, { reducedMotion: "reduce" });
    await still(opened.page);
    await use({ ...opened, people, as: null });
    await opened.context.close();
    await gateway.stop();
  },
  { scope: "worker", timeout: 120_000 },
];

const test = base.extend({
  used: shared({ STORE_SESSION_MESSAGES: "true" }, furnish),
  empty: shared(),
});

const LOOKS = [
  { width: 1440, colorScheme: "light", rules: undefined },
  { width: 1440, colorScheme: "dark", rules: ["color-contrast"] },
  { width: 390, colorScheme: "dark", rules: undefined },
  { width: 390, colorScheme: "light", rules: ["color-contrast"] },
];

/** The serious faults of a page in its current state, in each of the looks. */
async function look(page, { narrow, wide }) {
  const found = [];
  await page.evaluate(axe);
  for (const { width, colorScheme, rules } of LOOKS) {
    if ((narrow && width > 390) || (wide && width < 1440)) continue;
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme });
    const faults = await page.evaluate(async (only) => {
      const run = only === undefined ? {} : { runOnly: { type: "rule", values: only } };
      // A dialog is checked without the page below it, which has a separate test.
      const over = [...document.querySelectorAll("[role=dialog], [role=menu]")];
      const { violations } = await window.axe.run(over.length > 0 ? over : document, {
        resultTypes: ["violations"],
        ...run,
      });
      const serious = violations.filter(
        ({ impact }) => impact === "serious" || impact === "critical",
      );
      const where = (nodes) => nodes.map((node) => node.target.join(" ")).slice(0, 3);
      const sideways = document.documentElement.scrollWidth - innerWidth;
      return [
        ...serious.map(({ id, impact, nodes }) => `${impact} ${id}: ${where(nodes).join(" | ")}`),
        ...(sideways > 0 ? [`${sideways} pixels too wide`] : []),
      ];
    }, rules);
    found.push(...faults.map((fault) => `${colorScheme}, ${width}: ${fault}`));
  }
  return found;
}

/** Ends each transition at once, so that colours and positions are final. */
async function still(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Animation.enable");
  await devtools.send("Animation.setPlaybackRate", { playbackRate: 10_000 });
}

/** Opens a view and checks it in each look. */
async function check(place, view) {
  const { context, page, faults, people } = place;
  if (place.as !== view.as) {
    await context.clearCookies();
    if (view.as !== null) await authenticate(page, view.as && people[view.as].defaultKey.key);
    place.as = view.as;
  }
  await page.setViewportSize({ width: view.narrow ? 390 : 1440, height: 844 });
  await open(page, t, view, people);
  const found = await look(page, view);
  expect([...found, ...faults.splice(0)]).toEqual([]);
}

test.describe("a gateway in use", () => {
  for (const view of [LOGIN, ...PAGES]) test(view.name, ({ used }) => check(used, view));
});

test.describe("an empty gateway", () => {
  for (const name of EMPTY) test(name, ({ empty }) => check(empty, { path: `/${name}` }));
});
