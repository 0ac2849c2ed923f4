/**
 * Pictures of every page, in both themes and two widths, into `shots/`: of a gateway in use, and of
 * an empty one. Run `npm run shots [name…]`, or with `SHOTS_LANGUAGE=zh` for the Chinese ones (a
 * font for them must be installed). Without names, and with the name `pictures`, it also makes
 * those of the README, into `docs/images/` (`pictures.mjs`).
 */
import { mkdirSync } from "node:fs";
import { logIn, openPage, startBrowser } from "./browser.mjs";
import { furnish } from "./furnish.mjs";
import { startGateway } from "./gateway.mjs";
import { EMPTY, open, PAGES, words } from "./pages.mjs";
import { makePictures } from "./pictures.mjs";

const wanted = process.argv.slice(2);
const isWanted = (name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word));
const language = process.env.SHOTS_LANGUAGE ?? "en";
const t = words(language);
const folder = new URL("../shots/", import.meta.url).pathname;
mkdirSync(folder, { recursive: true });

/** Every page of this gateway, in each look. */
async function shoot(gateway, pages, people) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1440, 390]) {
      const viewport = { width, height: width === 390 ? 844 : 900 };
      const { context, page, faults } = await openPage(browser, gateway, { colorScheme, viewport });
      await page.addInitScript(
        (chosen) => localStorage.setItem("tollgate.language", chosen),
        language,
      );
      const shot = async (name) => {
        await page.waitForTimeout(500);
        await page.screenshot({ path: `${folder}${name}-${colorScheme}-${width}.png` });
      };
      let seenWith = null;
      for (const one of pages) {
        if (!isWanted(one.name) || (one.narrow && width > 390) || (one.wide && width < 1440))
          continue;
        if (one.as !== seenWith) {
          await context.clearCookies();
          await logIn(page, one.as && people[one.as].defaultKey.key);
          seenWith = one.as;
        }
        await open(page, t, one, people).catch((error) =>
          console.log(`${one.name}: ${error.message}`),
        );
        await shot(one.name);
      }
      if (isWanted("login")) {
        await context.clearCookies();
        await page.goto("/login");
        await shot("login");
      }
      for (const fault of faults) console.log(`${colorScheme} ${width}: ${fault}`);
      await context.close();
    }
  }
}

const browser = await startBrowser();
if (wanted.includes("pictures")) await makePictures(browser);
// If their requirements are missing, the other pictures are still made.
else if (wanted.length === 0)
  await makePictures(browser).catch((error) => console.log(`pictures: ${error.message}`));
if (wanted.length === 1 && wanted[0] === "pictures") {
  await browser.close();
  process.exit(0);
}
const furnished = await startGateway({ STORE_SESSION_MESSAGES: "true" });
const empty = await startGateway();
try {
  await shoot(furnished, PAGES, await furnish(furnished));
  const bare = EMPTY.map((name) => ({ name: `empty-${name}`, path: `/${name}` }));
  await shoot(empty, bare);
} finally {
  await browser.close();
  await furnished.stop();
  await empty.stop();
}
