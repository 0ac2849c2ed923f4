/** Who gets in, and where to. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { furnish } from "./furnish.mjs";
import { logIn, openPage, startBrowser, startGateway, TOKEN } from "./gateway.mjs";

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

test("the administrator's token leads to the dashboard, a reload stays, logout ends it", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await page.goto(`${gateway.url}/people`);
  await page.waitForURL(/\/login\?from=/);
  await page.getByLabel(/token or key/i).fill(TOKEN);
  await page.keyboard.press("Enter");
  // Back to where one wanted to go.
  await page.waitForURL(`${gateway.url}/people`);
  await page.reload();
  await page.getByRole("heading", { name: "People" }).waitFor();
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await page.waitForURL(/\/login/);
  await page.goto(`${gateway.url}/dashboard`);
  await page.waitForURL(/\/login/);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a wrong key is refused in the gateway's words and stays in the field", async () => {
  const { context, page } = await openPage(browser, gateway);
  await page.goto(`${gateway.url}/login`);
  await page.getByLabel(/token or key/i).fill("sk-nothing");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").filter({ hasText: "neither a known key" }).waitFor();
  assert.equal(await page.getByLabel(/token or key/i).inputValue(), "sk-nothing");
  await context.close();
});

test("the key of a user who administers leads to every page", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway, people.boss.defaultKey.key);
  await page.waitForURL(/\/dashboard/);
  const pages = page.getByRole("navigation");
  for (const name of ["Providers", "Prices", "Rules", "Settings", "Audit log", "My usage"]) {
    await pages.getByRole("link", { name }).waitFor();
  }
  await pages.getByRole("link", { name: "People" }).click();
  await page.getByRole("cell", { name: "bob", exact: true }).waitFor();
  // What is done is noted under the key's name.
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByText("Administrator · key default").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("a user's key leads to the dashboard without the administrator's pages", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway, people.ann.defaultKey.key);
  await page.waitForURL(/\/dashboard/);
  const pages = page.getByRole("navigation");
  await pages.getByRole("link", { name: "People" }).waitFor();
  assert.equal(await pages.getByRole("link", { name: "Providers" }).count(), 0);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a key that may not use the web UI leads to its own usage, and nowhere else", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway, people.cli.generatedKey);
  await page.waitForURL(/\/my-usage/);
  await page.getByRole("heading", { name: "My usage" }).waitFor();
  await page.goto(`${gateway.url}/providers`);
  await page.waitForURL(/\/my-usage/);
  assert.equal(await page.getByRole("navigation").getByRole("link", { name: "People" }).count(), 0);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a Secure cookie that plain HTTP drops is explained", async (t) => {
  const secure = await startGateway({ ENABLE_SECURE_COOKIES: "true" });
  t.after(secure.stop);
  const { context, page } = await openPage(browser, secure);
  // Browsers keep Secure cookies of loopback hosts; elsewhere they drop them. Here the cookie is
  // dropped by hand.
  await page.route("**/api/auth/login", async (route) => {
    const reply = await route.fetch();
    const { "set-cookie": cookie, ...headers } = reply.headers();
    assert.match(cookie, /; Secure/);
    await context.clearCookies();
    await route.fulfill({ response: reply, headers });
  });
  await page.goto(`${secure.url}/login`);
  await page.getByLabel(/token or key/i).fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("ENABLE_SECURE_COOKIES=false").waitFor();
  await context.close();
});
