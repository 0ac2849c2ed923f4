/** System settings, notifications, and the audit log that tells of both. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
before(async () => {
  gateway = await startGateway({ TOLLGATE_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.2/32" });
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("settings are saved as changed, bounds are told at the field, and a clean-up says what it did", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/settings`);
  await page.getByText("Europe/Berlin", { exact: true }).waitFor();
  await page.getByLabel("Keep").fill("366");
  await page.getByLabel("Site title").fill("House gateway");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").filter({ hasText: "must be at most 365" }).waitFor();
  assert.equal(await page.getByLabel("Site title").inputValue(), "House gateway");

  // Leaving asks first; staying keeps what was typed.
  await page.getByRole("tab", { name: "Notifications" }).click();
  await page.getByRole("dialog", { name: "Discard your changes?" }).getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("Keep").fill("14");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("There are unsaved changes").waitFor({ state: "detached" });
  const saved = await gateway.action("system-config/fetchSystemSettings");
  assert.deepEqual([saved.siteTitle, saved.cleanupRetentionDays], ["House gateway", 14]);

  await page.getByRole("button", { name: "Clean up now" }).click();
  const question = page.getByRole("dialog", { name: "Remove all requests older than 14 days?" });
  await question.getByRole("button", { name: "Clean up now" }).click();
  await page.getByText("The last run removed 0 requests").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("a webhook that is not public is refused in the gateway's words; the secret is never shown again", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/settings?view=notifications`);
  const webhook = page.getByLabel("Webhook address").first();
  await webhook.fill("http://127.0.0.1:9/hook");
  await page.getByRole("button", { name: "Test" }).first().click();
  await page.getByRole("alert").filter({ hasText: "not public" }).waitFor();
  // Switched on without an address: told before anything is sent.
  await webhook.fill("");
  await page
    .getByRole("switch", { name: /Send this notification/ })
    .first()
    .click({ force: true });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").filter({ hasText: "Enter an address" }).waitFor();
  await webhook.fill("https://hooks.example.com/circuit");
  await page.getByLabel("From").fill("90");
  await page.getByRole("button", { name: "Generate" }).click();
  const secret = await page.getByLabel("Secret").inputValue();
  assert.match(secret, /^[0-9a-f]{64}$/);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Messages are signed").waitFor();
  await page.reload();
  await page.getByText("Messages are signed").waitFor();
  assert.doesNotMatch(await page.content(), new RegExp(secret));
  const saved = await gateway.action("notifications/getNotificationSettingsAction");
  assert.deepEqual([saved.circuitBreakerEnabled, saved.costAlertThreshold], [true, 0.9]);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a test message arrives, signed, and the page says how long it took", async (run) => {
  const got = [];
  const hook = createServer((request, reply) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", () => {
      got.push({ headers: request.headers, body });
      reply.writeHead(got.length === 1 ? 204 : 500).end();
    });
  });
  await new Promise((listening) => hook.listen(0, "127.0.0.2", listening));
  run.after(() => hook.close());
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/settings?view=notifications`);
  await page.getByLabel("Webhook address").first().fill(`http://127.0.0.2:${hook.address().port}/hook`);
  await page.getByRole("button", { name: "Test" }).first().click();
  await page.getByText(/The test message was delivered: status 204 after \d+ ms/).waitFor();
  assert.equal(got.length, 1);
  assert.equal(typeof JSON.parse(got[0].body), "object");
  assert.ok(Object.keys(got[0].headers).some((name) => name.includes("signature")));
  // One that does not take it is named as such, with its answer.
  await page.getByRole("button", { name: "Test" }).first().click();
  await page.getByText("The test message was not delivered").first().waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("the audit log names each change with what was before and after it, filtered by the address", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await gateway.action("system-config/saveSystemSettings", { siteTitle: "Before" });
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/audit?action=system-config.save`);
  await gateway.action("system-config/saveSystemSettings", { siteTitle: "After", enableAutoCleanup: true });
  // It comes by itself.
  await page.getByRole("cell", { name: "siteTitle, enableAutoCleanup" }).first().click();
  const panel = page.getByRole("dialog", { name: "system-config.saveSystemSettings" });
  await panel.getByRole("row", { name: "siteTitle Before After" }).waitFor();
  assert.equal(await panel.getByRole("row", { name: /currencyDisplay/ }).count(), 0);
  await panel.getByRole("button", { name: /unchanged fields/ }).click();
  await panel.getByRole("row", { name: /currencyDisplay/ }).waitFor();
  assert.equal(await page.getByRole("cell", { name: "notifications.update" }).count(), 0);
  await page.getByRole("button", { name: "Remove filter Operation" }).click();
  await page.getByRole("cell", { name: "notifications.updateNotificationSettingsAction" }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});
