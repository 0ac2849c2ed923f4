/** Every page in both themes: axe finds no serious fault, the console is quiet, the policy holds, nothing scrolls sideways. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { furnish, logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";
import { PAGES } from "./pages.mjs";

let gateway;
let browser;
let people;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  people = await furnish(gateway);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

for (const [colorScheme, width] of [
  ["light", 1440],
  ["dark", 390],
]) {
  test(`every page, ${colorScheme}, ${width} pixels wide`, async () => {
    const { context, page, faults } = await openPage(browser, gateway, {
      colorScheme,
      viewport: { width, height: 844 },
    });
    const found = [];
    const look = async (name) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      for (const { id, impact, nodes } of violations.filter((one) => ["serious", "critical"].includes(one.impact))) {
        found.push(
          `${name}: ${impact} ${id}: ${nodes
            .map((node) => node.target.join(" "))
            .slice(0, 3)
            .join(" | ")}`,
        );
      }
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (sideways > 0) found.push(`${name}: ${sideways} pixels too wide`);
    };
    await page.goto(`${gateway.url}/login`);
    await page.getByRole("button", { name: "Log in" }).waitFor();
    await look("login");
    await logIn(page, gateway);
    for (const { name, path, ready, key } of PAGES(people)) {
      if (key !== undefined) {
        await context.clearCookies();
        await logIn(page, gateway, key);
      }
      await page.goto(gateway.url + path);
      await page.getByRole("main").or(page.getByRole("dialog")).first().waitFor();
      await ready?.(page);
      // The event stream never ends, so there is no idle network to wait for.
      await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
      await page.waitForTimeout(300);
      await look(name);
    }
    await context.close();
    assert.deepEqual([...found, ...faults], []);
  });
}
