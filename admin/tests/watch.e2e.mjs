/** Looking at what happened: the log and its file, a session with what was said in it, and one's own usage. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
let ann;
let cli;
before(async () => {
  gateway = await startGateway({ STORE_SESSION_MESSAGES: "true" });
  browser = await startBrowser();
  const { action, mockUrl } = gateway;
  await action("providers/addProvider", {
    name: "main",
    url: mockUrl,
    key: "mock-key-0123456789",
    allowed_models: ["claude-sonnet-4-5", "claude-haiku-4-5"],
  });
  ann = await action("users/addUser", { name: "ann", limitDailyUsd: 1, limitMonthlyUsd: 20, rpm: 60 });
  // What a spreadsheet would run, as a key's name.
  const key = { userId: ann.user.id, name: '=cmd("x"), cli', canLoginWebUi: false, limitDailyUsd: 0.5 };
  cli = await action("keys/addKey", key);
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Waits until so many requests are in the database. */
async function logged(total) {
  for (let tries = 0; (await gateway.action("usage-logs/getUsageLogs")).total < total; tries++) {
    assert.ok(tries < 300, "the log stays short");
    await new Promise((done) => setTimeout(done, 100));
  }
}

test("what is filtered can be taken away as a file, row by row as it is shown", async () => {
  for (const model of ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-sonnet-4-5"]) {
    assert.equal((await gateway.ask(cli.generatedKey, model)).status, 200);
  }
  assert.equal((await gateway.ask(ann.defaultKey.key, "no-such-model")).status, 404);
  await logged(4);
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/logs?model=claude-sonnet-4-5`);
  const rows = page.locator("tbody tr[data-row]");
  await rows.nth(1).waitFor();
  assert.equal(await rows.count(), 2);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const file = await saving;
  assert.match(file.suggestedFilename(), /^tollgate-logs-[\d-T]+\.csv$/);
  const [head, ...lines] = readFileSync(await file.path(), "utf8")
    .trim()
    .split("\r\n");
  assert.match(head, /^createdAt,requestId,userName,keyName,/);
  assert.equal(lines.length, 2);
  // A name that a spreadsheet would take for a formula is a text in it.
  for (const line of lines) assert.match(line, /,ann,"'=cmd\(""x""\), cli",.*,claude-sonnet-4-5,/);
  await page.getByText("2 requests exported").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("a paused log stands still, says how many are new, and takes them in", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/logs`);
  const rows = page.locator("tbody tr[data-row]");
  await page
    .getByRole("status", { name: "Live" })
    .or(page.getByText("Live", { exact: true }))
    .first()
    .waitFor();
  await rows.nth(3).waitFor();
  const before = await rows.count();
  await page.getByRole("button", { name: "Pause" }).click();
  await gateway.ask(cli.generatedKey);
  await gateway.ask(cli.generatedKey);
  await page.getByRole("button", { name: "2 new" }).waitFor();
  // Longer than the list would need to be read again after the live connection began.
  await page.waitForTimeout(2_000);
  assert.equal(await rows.count(), before);
  await page.getByRole("button", { name: "Resume" }).click();
  await rows.nth(before + 1).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("a session shows its requests in order, and what was said", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/sessions`);
  const headers = { "x-session-id": "the-one-conversation" };
  await gateway.ask(ann.defaultKey.key, "claude-sonnet-4-5", "What is a tollgate?", {}, headers);
  // The event stream brings it, and its second request into the open panel.
  await page.locator("tbody tr[data-row]").filter({ hasText: "the-one-conversation" }).click();
  const panel = page.getByRole("dialog", { name: "ann" });
  await panel.getByRole("tab", { name: "Messages" }).click();
  await panel.getByText("What is a tollgate?").waitFor();
  await panel.getByText("This is claude-sonnet-4-5, the mock model.").waitFor();
  await panel.getByRole("tab", { name: "Requests" }).click();
  await panel.getByRole("listitem").first().waitFor();
  assert.equal(await panel.getByRole("listitem").count(), 1);
  await gateway.ask(ann.defaultKey.key, "claude-haiku-4-5", "And who keeps it?", {}, headers);
  await panel.getByRole("listitem").nth(1).waitFor();
  const models = await panel.getByRole("listitem").allTextContents();
  assert.match(models[0], /sonnet/);
  assert.match(models[1], /haiku/);
  // From there to the request, in the log of this session alone.
  await panel.getByRole("link", { name: /haiku/ }).click();
  await page.getByRole("dialog", { name: "claude-haiku-4-5" }).getByText("What happened").waitFor();
  const rows = page.locator("tbody tr[data-row]");
  await rows.nth(1).waitFor();
  assert.equal(await rows.count(), 2);
  assert.deepEqual(faults, []);
  await context.close();
});

test("somebody sees their own limits, use, models and requests, and nobody else's", async () => {
  const other = await gateway.action("users/addUser", { name: "bob" });
  assert.equal((await gateway.ask(other.defaultKey.key, "claude-haiku-4-5")).status, 200);
  await gateway.direct("script", [{ usage: { input: 30_000, output: 2_000 } }]);
  // 30,000 × 3 and 2,000 × 15 dollars a million are 0.12.
  assert.equal((await gateway.ask(cli.generatedKey)).status, 200);
  await logged(10);
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway, cli.generatedKey);
  await page.waitForURL(/\/my-usage/);
  // Limits: what is used of them, and when they begin again.
  const limits = page.locator("section").filter({ has: page.getByRole("heading", { name: "Limits", exact: true }) });
  await limits.getByText(/\$0\.12\d* \/ \$0\.50/).waitFor();
  await limits.getByText(/\$0\.12\d* \/ \$1\.00/).waitFor();
  await limits.getByText(/\$0\.12\d* \/ \$20\.00/).waitFor();
  assert.ok((await limits.getByText(/^resets /).count()) >= 6);
  await limits.getByText("Requests per minute").waitFor();
  // The key, and when its day begins.
  const me = page.locator("section").filter({ has: page.getByRole("heading", { name: "This key" }) });
  await me.getByText('=cmd("x"), cli').waitFor();
  await me.getByText("00:00 (Europe/Berlin)").waitFor();
  // Use, today and of a longer time.
  const use = page.locator("section").filter({ has: page.getByRole("heading", { name: "Use", exact: true }) });
  await use.getByRole("row", { name: /claude-haiku-4-5 1 / }).waitFor();
  await use.getByRole("button", { name: "7 days" }).click();
  await use.getByRole("row", { name: /claude-sonnet-4-5 5 / }).waitFor();
  // Models that the provider names, and only the key's own requests.
  const models = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Models that this key can use" }) });
  await models.getByText("claude-haiku-4-5", { exact: true }).waitFor();
  const rows = page.getByRole("table", { name: "Requests" }).locator("tbody tr[data-row]");
  await rows.nth(5).waitFor();
  assert.equal(await rows.count(), 6);
  // Nothing to change, and nowhere else to go.
  const main = page.getByRole("main");
  assert.equal(await main.getByRole("textbox").count(), 0);
  assert.deepEqual(await page.getByRole("navigation").getByRole("link").allTextContents(), ["My usage", "Connect"]);
  assert.deepEqual(faults, []);
  await context.close();
});
