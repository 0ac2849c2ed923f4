/** What is around every page: the gateway's name and currency, the command palette, refusals in Chinese. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway, TOKEN } from "./gateway.mjs";

let gateway;
let browser;
let ann;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  const { action, mockUrl } = gateway;
  await action("providers/addProvider", { name: "upstream", url: mockUrl, key: "mock-key-0123456789" });
  ann = await action("users/addUser", { name: "ann", limitDailyUsd: 5 });
  assert.equal((await gateway.ask(ann.defaultKey.key)).status, 200);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("the gateway's name and currency are shown, and change as they are saved", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await gateway.action("system-config/saveSystemSettings", { siteTitle: "House gateway" });
  await page.goto(`${gateway.url}/login`);
  await page.getByRole("heading", { name: "House gateway" }).waitFor();
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/people?user=${ann.user.id}`);
  await page.getByText("$5.00").first().waitFor();
  assert.equal(await page.title(), "People · House gateway");
  await gateway.action("system-config/saveSystemSettings", { siteTitle: "Other house", currencyDisplay: "€" });
  // It comes by itself.
  await page.getByText("€5.00").first().waitFor();
  await page.getByText("Other house").first().waitFor();
  assert.equal(await page.title(), "People · Other house");
  await gateway.action("system-config/saveSystemSettings", { currencyDisplay: "USD" });
  assert.deepEqual(faults, []);
  await context.close();
});

test("the palette leads to providers, sessions, models and prices", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const palette = page.getByRole("dialog", { name: "Go to" });
  const go = async (typed, option, path) => {
    await page.keyboard.press("Control+k");
    await palette.getByRole("combobox").fill(typed);
    await palette.getByRole("option", { name: option }).first().click();
    await page.waitForURL((url) => `${url.pathname}${url.search}`.startsWith(path));
  };
  await go("upstr", /upstream/, "/providers?id=");
  await go("sonnet", /claude-sonnet-4-5.*Model/, "/logs?model=claude-sonnet-4-5");
  await go("claude price", /Price/, "/prices?model=claude-");
  await go("ann session", /Session/, "/sessions?session=");
  assert.deepEqual(faults, []);
  await context.close();
});

test("a chart takes the colours of a theme as it is chosen, by a person or by the system", async () => {
  const { context, page, faults } = await openPage(browser, gateway, { colorScheme: "light" });
  await logIn(page, gateway);
  const [light, dark] = ["rgb(79, 70, 229)", "rgb(143, 139, 255)"];
  const marker = page.locator(".u-legend .u-marker").nth(1);
  const colour = (wanted) =>
    page.waitForFunction(
      (wanted) => {
        const marker = document.querySelectorAll(".u-legend .u-marker")[1];
        return marker && getComputedStyle(marker).borderTopColor === wanted;
      },
      wanted,
      { timeout: 5_000 },
    );
  const drawn = () => page.locator(".uplot canvas").evaluate((canvas) => canvas.toDataURL());
  await marker.waitFor();
  await colour(light);
  const before = await drawn();
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "Dark" }).click();
  await colour(dark);
  const after = await drawn();
  assert.notEqual(after, before);
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "Theme of the system" }).click();
  await colour(light);
  await page.emulateMedia({ colorScheme: "dark" });
  await colour(dark);
  assert.equal(await drawn(), after);
  assert.deepEqual(faults, []);
  await context.close();
});

test("refusals are told in Chinese where the page is", async () => {
  const { context, page, faults } = await openPage(browser, gateway, { locale: "zh-CN" });
  await page.goto(`${gateway.url}/login`);
  await page.locator("input[name=key]").fill("sk-00000000000000000000000000000000");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "这不是已知的密钥" }).waitFor();
  await logIn(page, gateway, TOKEN);
  await page.goto(`${gateway.url}/settings`);
  await page.locator("input[name=cleanupRetentionDays]").fill("366");
  await page.locator("form button[type=submit]").click();
  await page.getByRole("alert").filter({ hasText: "不能大于 365" }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});
