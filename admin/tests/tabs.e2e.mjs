/** Many tabs at once, over HTTP/1.1 with its six connections to a server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
let ann;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  await gateway.action("providers/addProvider", { name: "main", url: gateway.mockUrl, key: "mock-key-0123456789" });
  ann = await gateway.action("users/addUser", { name: "ann", limitDailyUsd: 4 });
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

const live = (page) => page.getByRole("status").filter({ hasText: "Live" }).first().waitFor({ timeout: 20_000 });
const rows = (page, many) =>
  page.waitForFunction((many) => document.querySelectorAll("tbody tr[data-row]").length === many, many, {
    timeout: 20_000,
  });

test("eight tabs load, and all of them show a request as it ends", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  const tabs = [page];
  while (tabs.length < 8) tabs.push(await context.newPage());
  for (const tab of tabs) {
    await tab.goto(`${gateway.url}/logs`, { timeout: 20_000 });
    await tab.getByRole("heading", { name: "Logs" }).waitFor({ timeout: 20_000 });
    await live(tab);
  }
  assert.equal((await gateway.ask(ann.defaultKey.key)).status, 200);
  for (const tab of tabs) await rows(tab, 1);
  // The tab that was first is closed: the others go on.
  await tabs.shift().close();
  assert.equal((await gateway.ask(ann.defaultKey.key)).status, 200);
  for (const tab of tabs) await rows(tab, 2);
  // Reloads work too.
  for (const tab of tabs) {
    await tab.reload({ timeout: 20_000 });
    await rows(tab, 2);
  }
  assert.deepEqual(faults, []);
  await context.close();
});

test("a page that was left and is come back to is live", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/logs`);
  await live(page);
  await rows(page, 2);
  await page.goto(`${gateway.url}/api/actions/docs`);
  await page.goBack();
  await live(page);
  assert.equal((await gateway.ask(ann.defaultKey.key)).status, 200);
  await rows(page, 3);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a tab of another person does not see this one's requests", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/logs`);
  await live(page);
  // The same browser, logged in again: pages loaded from now on are that person's.
  const bob = await gateway.action("users/addUser", { name: "bob" });
  await page.getByRole("button", { name: "Account" }).first().click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await logIn(page, gateway, bob.defaultKey.key);
  await page.goto(`${gateway.url}/logs`);
  await live(page);
  assert.equal((await gateway.ask(ann.defaultKey.key)).status, 200);
  assert.equal((await gateway.ask(bob.defaultKey.key)).status, 200);
  await rows(page, 1);
  assert.deepEqual(faults, []);
  await context.close();
});
