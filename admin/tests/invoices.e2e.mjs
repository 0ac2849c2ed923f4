/** Invoices: a source is entered, compared, and leads to the requests. */
import { readFileSync } from "node:fs";
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";
import { ADMIN_KEY, startVendor } from "./vendor.mjs";

const today = () => new Date().toISOString().slice(0, 10);

test("an invoice is compared, and a difference leads to its requests", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  const vendor = await startVendor();
  await gateway.addProvider({ name: "main" });
  const { defaultKey } = await gateway.addUser("ann");
  await gateway.ask(defaultKey.key, "claude-haiku-4-5");
  await gateway.logged(1);
  await authenticate(page);
  await page.goto("/invoices");
  await expect(page.getByText("No invoice source yet")).toBeVisible();
  await page.getByRole("button", { name: "Add a source" }).click();
  await field("Administration key").fill("sk-ant-api-of-a-model");
  await field("Address").fill(vendor.url);
  await dialog.getByRole("button", { name: "Create" }).click();
  await expect(dialog).toHaveCount(0);
  await page.getByLabel("From").fill(today());
  await page.getByLabel("To").fill(today());
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await expect(page.getByText("main: not compared")).toBeVisible();
  await expect(page.getByText("refused the administration key (401)")).toBeVisible();

  await page.getByRole("button", { name: "main", exact: true }).click();
  await expect(field("Administration key")).toHaveValue("");
  await field("Administration key").fill(ADMIN_KEY);
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog).toHaveCount(0);
  const row = page.getByRole("row").filter({ hasText: "claude-haiku-4-5" });
  await expect(row.getByText("use outside the gateway")).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: "Web Search Usage" })).toBeVisible();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "CSV" }).click();
  const csv = readFileSync(await (await saved).path(), "utf8");
  expect(csv.split("\r\n").length).toBe(4);
  await row.getByRole("link").click();
  await expect(page).toHaveURL(/\/logs\?.*provider=/);
  await expect(page.getByRole("row").filter({ hasText: "claude-haiku-4-5" })).toHaveCount(1);
  vendor.stop();
});
