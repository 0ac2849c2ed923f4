/** What moves by itself: limits, one's own requests, the log. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
let ann;
let cli;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  const { action, mockUrl } = gateway;
  await action("providers/addProvider", { name: "main", url: mockUrl, key: "mock-key-0123456789" });
  ann = await action("users/addUser", { name: "ann", limitDailyUsd: 4 });
  cli = await action("keys/addKey", {
    userId: ann.user.id,
    name: "cli",
    canLoginWebUi: false,
    limitDailyUsd: 2,
  });
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** One reply of this many output tokens. */
const spend = async (key, output) => {
  await gateway.direct("script", [{ usage: { input: 0, output } }]);
  assert.equal((await gateway.ask(key)).status, 200);
};

test("a read-only key sees its limits and requests move", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway, cli.generatedKey);
  await page.getByText("Of this key").waitFor();
  await page.getByRole("status").filter({ hasText: "Live" }).first().waitFor();
  await spend(cli.generatedKey, 100_000);
  // 1.50 of 2 and of 4, and the request's row.
  await page.getByText("75%").first().waitFor();
  await page.getByText("38%").first().waitFor();
  await page.locator("tbody tr[data-row]").first().waitFor();
  await page.getByText("$1.50").first().waitFor();
  // Another key of the same user: the user's limit moves, the list does not.
  await spend(ann.defaultKey.key, 100_000);
  await page.getByText("75%").nth(1).waitFor();
  assert.equal(await page.locator("tbody tr[data-row]").count(), 1);
  assert.deepEqual(faults, []);
  await context.close();
});

test("the limits of whoever is looked at move with their requests", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  const { user, defaultKey } = await gateway.action("users/addUser", { name: "bob", limitDailyUsd: 10 });
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/people?user=${user.id}`);
  await page.getByText("0%", { exact: true }).first().waitFor();
  await spend(defaultKey.key, 100_000);
  await page.getByText("15%").first().waitFor();
  await page.goto(`${gateway.url}/providers?id=1`);
  await page.getByText("$4.50").first().waitFor();
  await spend(defaultKey.key, 100_000);
  await page.getByText("$6.00").first().waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("what running requests are expected to cost is shown as reserved until they end", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  const { user, defaultKey } = await gateway.action("users/addUser", { name: "eve", limitDailyUsd: 10 });
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/people?user=${user.id}`);
  await page.getByText("0%", { exact: true }).first().waitFor();
  // The provider says nothing until the client leaves.
  await gateway.direct("script", [{ delay_ms: 600_000 }]);
  const client = new AbortController();
  const running = gateway.ask(defaultKey.key, undefined, undefined, {}, {}, client.signal).catch(() => {});
  await page
    .getByText(/reserved/)
    .first()
    .waitFor();
  client.abort();
  await running;
  await page
    .getByText(/reserved/)
    .first()
    .waitFor({ state: "detached" });
  assert.deepEqual(faults, []);
  await context.close();
});
