/** The price table: found missing, entered, uploaded, edited, deleted. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  const { action, ask, mockUrl } = gateway;
  await action("providers/addProvider", { name: "main", url: mockUrl, key: "mock-key-0123456789" });
  const { defaultKey } = await action("users/addUser", { name: "ann" });
  await ask(defaultKey.key, "a-house-model");
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("a model that was used without a price is named, and gets one by the million", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/prices`);
  await page.getByRole("button", { name: "Add a price for a-house-model" }).click();
  const form = page.getByRole("dialog", { name: "New price" });
  assert.equal(await form.getByLabel("Model").inputValue(), "a-house-model");
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByRole("alert").filter({ hasText: "Enter at least one rate" }).waitFor();
  await form.getByLabel("Input", { exact: true }).fill("0.075");
  await form.getByLabel("Output", { exact: true }).fill("2000000");
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByRole("alert").filter({ hasText: "must not be above 1 USD" }).waitFor();
  await form.getByLabel("Output", { exact: true }).fill("1.50");
  await form.getByRole("button", { name: "Save" }).click();
  await form.waitFor({ state: "detached" });
  await page.getByText("have no price").waitFor({ state: "detached" });
  const prices = await gateway.action("model-prices/getModelPrices");
  const { priceData, source } = prices.find((one) => one.modelName === "a-house-model");
  assert.deepEqual([priceData.input_cost_per_token, priceData.output_cost_per_token], [7.5e-8, 1.5e-6]);
  assert.equal(source, "manual");

  // It is open beside the table now: deleting asks once and names it.
  const panel = page.getByRole("dialog", { name: "a-house-model" });
  await panel.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete price" }).click();
  await panel.waitFor({ state: "detached" });
  assert.deepEqual(faults, []);
  await context.close();
});

test("an upload names what was added and what failed, and keeps the text when it is refused", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/prices`);
  await page.getByRole("button", { name: "Upload" }).click();
  const dialog = page.getByRole("dialog", { name: "Upload a price table" });
  const text = dialog.getByRole("textbox", { name: "Price table" });
  await text.fill("not a table");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await dialog.getByRole("alert").filter({ hasText: "JSON object" }).waitFor();
  assert.equal(await text.inputValue(), "not a table");
  const table = { "fresh-model": { input_cost_per_token: 2e-6 }, "bad-model": { input_cost_per_token: -1 } };
  await dialog.locator("input[type=file]").setInputFiles({
    name: "prices.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(table)),
  });
  await dialog.getByText("prices.json").waitFor();
  await dialog.getByRole("button", { name: "Upload" }).click();
  await dialog.getByText("1 added, 0 updated, 0 unchanged, 1 failed.").waitFor();
  await dialog.getByText("input_cost_per_token must not be negative").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("searchbox", { name: "Search models" }).fill("fresh");
  await page.getByText("1 of ").waitFor();
  await page.getByRole("cell", { name: "fresh-model" }).waitFor();
  assert.match(page.url(), /q=fresh/);
  assert.deepEqual(faults, []);
  await context.close();
});
