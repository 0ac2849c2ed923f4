/** System settings, notifications, and the audit log that records both. */
import { createServer } from "node:http";
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

test.use({ settings: { TOLLGATE_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.2/32" } });

test("changed settings are saved, bounds are shown at the field, a cleanup shows its result", async ({
  gateway,
  page,
}) => {
  await authenticate(page);
  await page.goto("/settings");
  await expect(page.getByText("Europe/Berlin", { exact: true })).toBeVisible();
  await page.getByLabel("Keep").fill("366");
  await page.getByLabel("Site title").fill("House gateway");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert").filter({ hasText: "must be at most 365" })).toBeVisible();
  await expect(page.getByLabel("Site title")).toHaveValue("House gateway");

  // Leaving asks first; staying keeps the input.
  await page.getByRole("tab", { name: "Notifications" }).click();
  await page
    .getByRole("dialog", { name: "Discard your changes?" })
    .getByRole("button", { name: "Cancel" })
    .click();
  await page.getByLabel("Keep").fill("14");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("There are unsaved changes")).toHaveCount(0);
  const saved = await gateway.action("system-config/fetchSystemSettings");
  expect([saved.siteTitle, saved.cleanupRetentionDays]).toEqual(["House gateway", 14]);

  await page.getByRole("button", { name: "Clean up now" }).click();
  const question = page.getByRole("dialog", { name: "Remove all requests older than 14 days?" });
  await question.getByRole("button", { name: "Clean up now" }).click();
  await expect(page.getByText("The last run removed 0 requests")).toBeVisible();
});

test("a webhook that is not public is refused; the secret is never shown again", async ({
  gateway,
  page,
}) => {
  await authenticate(page);
  await page.goto("/settings?view=notifications");
  const webhook = page.getByLabel("Webhook address").first();
  await webhook.fill("http://127.0.0.1:9/hook");
  await page.getByRole("button", { name: "Test" }).first().click();
  await expect(page.getByRole("alert").filter({ hasText: "not public" })).toBeVisible();
  // Enabled without an address: refused before a request is sent.
  await webhook.fill("");
  await page
    .getByRole("switch", { name: /Send this notification/ })
    .first()
    .click({ force: true });
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("alert").filter({ hasText: "Enter an address" })).toBeVisible();
  await webhook.fill("https://hooks.example.com/circuit");
  await page.getByLabel("From").fill("90");
  await page.getByRole("button", { name: "Generate" }).click();
  const secret = await page.getByLabel("Secret").inputValue();
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Messages are signed")).toBeVisible();
  await page.reload();
  await expect(page.getByText("Messages are signed")).toBeVisible();
  expect(await page.content()).not.toMatch(new RegExp(secret));
  const saved = await gateway.action("notifications/getNotificationSettingsAction");
  expect([saved.circuitBreakerEnabled, saved.costAlertThreshold]).toEqual([true, 0.9]);
});

test("a test message arrives, signed, and the page says how long it took", async ({
  gateway,
  page,
}) => {
  await gateway.action("notifications/updateNotificationSettingsAction", {
    webhookSecret: "signed-with-this",
  });
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
  await authenticate(page);
  await page.goto("/settings?view=notifications");
  await page
    .getByLabel("Webhook address")
    .first()
    .fill(`http://127.0.0.2:${hook.address().port}/hook`);
  await page.getByRole("button", { name: "Test" }).first().click();
  await expect(
    page.getByText(/The test message was delivered: status 204 after \d+ ms/),
  ).toBeVisible();
  expect(got.length).toBe(1);
  expect(typeof JSON.parse(got[0].body)).toBe("object");
  expect(Object.keys(got[0].headers).filter((name) => name.includes("signature"))).not.toEqual([]);
  // A receiver that refuses the message is reported as such.
  await page.getByRole("button", { name: "Test" }).first().click();
  await expect(page.getByText("The test message was not delivered").first()).toBeVisible();
  hook.close();
});

test("the audit log has each change with its values before and after, filtered by address", async ({
  gateway,
  page,
}) => {
  await gateway.action("notifications/updateNotificationSettingsAction", {
    costAlertThreshold: 0.9,
  });
  await gateway.action("system-config/saveSystemSettings", { siteTitle: "Before" });
  await authenticate(page);
  await page.goto("/audit?action=system-config.save");
  await gateway.action("system-config/saveSystemSettings", {
    siteTitle: "After",
    enableAutoCleanup: true,
  });
  // The event stream updates it.
  await page.getByRole("cell", { name: "siteTitle, enableAutoCleanup" }).first().click();
  const panel = page.getByRole("dialog", { name: "system-config.saveSystemSettings" });
  await expect(panel.getByRole("row", { name: "siteTitle Before After" })).toBeVisible();
  await expect(panel.getByRole("row", { name: /currencyDisplay/ })).toHaveCount(0);
  await panel.getByRole("button", { name: /unchanged fields/ }).click();
  await expect(panel.getByRole("row", { name: /currencyDisplay/ })).toBeVisible();
  await expect(page.getByRole("cell", { name: "notifications.update" })).toHaveCount(0);
  await page.getByRole("button", { name: "Remove filter Operation" }).click();
  await expect(
    page.getByRole("cell", { name: "notifications.updateNotificationSettingsAction" }),
  ).toBeVisible();
  // A link to an entry that the list does not have.
  const [newest] = (await gateway.action("audit/getAuditLog")).entries;
  await page.goto(`/audit?action=users.&id=${newest.id}`);
  await expect(panel.getByRole("row", { name: "siteTitle Before After" })).toBeVisible();
});
