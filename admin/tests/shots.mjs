/** Pictures of every page, in both themes and two widths, into `shots/`. `npm run shots [name…]`: look at them. */
import { mkdirSync } from "node:fs";
import { furnish, logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";
import { PAGES } from "./pages.mjs";

const wanted = process.argv.slice(2);
const folder = new URL("../shots/", import.meta.url).pathname;
mkdirSync(folder, { recursive: true });
const gateway = await startGateway();
const people = await furnish(gateway);
const browser = await startBrowser();
try {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1440, 390]) {
      const viewport = { width, height: width === 390 ? 844 : 900 };
      const { context, page, faults } = await openPage(browser, gateway, { colorScheme, viewport });
      const language = process.env.SHOTS_LANGUAGE;
      if (language) await page.addInitScript((chosen) => localStorage.setItem("tollgate.language", chosen), language);
      await page.goto(`${gateway.url}/login`);
      await page.waitForLoadState("networkidle");
      await page.screenshot({ path: `${folder}login-${colorScheme}-${width}.png` });
      await logIn(page, gateway);
      for (const { name, path, ready, key } of PAGES(people)) {
        if (wanted.length > 0 && !wanted.some((word) => name.startsWith(word))) continue;
        if (key !== undefined) {
          await context.clearCookies();
          await logIn(page, gateway, key);
        }
        await page.goto(gateway.url + path);
        // Words to wait for are English ones.
        if (!language) await ready?.(page);
        else await page.waitForTimeout(600);
        await page.waitForTimeout(400);
        await page.screenshot({ path: `${folder}${name}-${colorScheme}-${width}.png` });
      }
      for (const fault of faults) console.log(`${colorScheme} ${width}: ${fault}`);
      await context.close();
    }
  }
} finally {
  await browser.close();
  await gateway.stop();
}
