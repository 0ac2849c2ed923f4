/** Several tabs of one browser, over HTTP/1.1 with its six connections to a server. */
import { authenticate, logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

let ann;
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider();
  ann = await gateway.addUser("ann", { limitDailyUsd: 4 });
});

const SOON = { timeout: 20_000 };
const live = (page) =>
  expect(page.getByRole("status").filter({ hasText: "Live" }).first()).toBeVisible(SOON);
const rows = (page, many) => expect(page.locator("tbody tr[data-row]")).toHaveCount(many, SOON);

test("eight tabs load, and all of them show a request as it ends", async ({
  gateway,
  context,
  page,
}) => {
  await logIn(page);
  const tabs = [page];
  while (tabs.length < 8) tabs.push(await context.newPage());
  for (const tab of tabs) {
    await tab.goto("/logs", SOON);
    await expect(tab.getByRole("heading", { name: "Logs" })).toBeVisible(SOON);
    await live(tab);
  }
  expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
  for (const tab of tabs) await rows(tab, 1);
  // The first tab is closed: the others stay live.
  await tabs.shift().close();
  expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
  for (const tab of tabs) await rows(tab, 2);
  // Reloads work too.
  for (const tab of tabs) {
    await tab.reload(SOON);
    await rows(tab, 2);
  }
});

test("a page that was left and is come back to is live", async ({ gateway, page }) => {
  for (let times = 0; times < 2; times++)
    expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
  await gateway.logged(2);
  await authenticate(page);
  await page.goto("/logs");
  await live(page);
  await rows(page, 2);
  await page.goto("/api/actions/docs");
  await page.goBack();
  await live(page);
  expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
  await rows(page, 3);
});

test("a tab of another person does not see this one's requests", async ({ gateway, page }) => {
  await authenticate(page);
  await page.goto("/logs");
  await live(page);
  // The same browser, logged in as another user: pages that are loaded from now on belong to that
  // user.
  const bob = await gateway.addUser("bob");
  await page.getByRole("button", { name: "Account" }).first().click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await logIn(page, bob.defaultKey.key);
  await page.goto("/logs");
  await live(page);
  expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
  expect((await gateway.ask(bob.defaultKey.key)).status).toBe(200);
  await rows(page, 1);
});
