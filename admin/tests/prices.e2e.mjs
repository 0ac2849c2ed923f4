/** The price table: prices that are missing, entered, uploaded and deleted. */
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider();
  const { defaultKey } = await gateway.addUser("ann");
  await gateway.ask(defaultKey.key, "a-house-model");
  await gateway.logged(1);
});

test("a model that was used without a price is named, and gets one by the million", async ({
  gateway,
  page,
}) => {
  await authenticate(page);
  await page.goto("/prices");
  await page.getByRole("button", { name: "Add a price for a-house-model" }).click();
  const form = page.getByRole("dialog", { name: "New price" });
  await expect(form.getByLabel("Model")).toHaveValue("a-house-model");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(
    form.getByRole("alert").filter({ hasText: "Enter at least one rate" }),
  ).toBeVisible();
  await form.getByLabel("Input", { exact: true }).fill("0.075");
  await form.getByLabel("Output", { exact: true }).fill("2000000");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(
    form.getByRole("alert").filter({ hasText: "must not be above 1 USD" }),
  ).toBeVisible();
  await form.getByLabel("Output", { exact: true }).fill("1.50");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form).toHaveCount(0);
  await expect(page.getByText("have no price")).toHaveCount(0);
  const prices = await gateway.action("model-prices/getModelPrices");
  const { priceData, source } = prices.find((one) => one.modelName === "a-house-model");
  expect([priceData.input_cost_per_token, priceData.output_cost_per_token]).toEqual([
    7.5e-8, 1.5e-6,
  ]);
  expect(source).toBe("manual");

  // The new price is open beside the table: deleting asks once and names it.
  const panel = page.getByRole("dialog", { name: "a-house-model" });
  await panel.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete price" }).click();
  await expect(panel).toHaveCount(0);
});

test("an upload lists added and failed entries, and keeps the text when it is refused", async ({
  page,
}) => {
  await authenticate(page);
  await page.goto("/prices");
  await page.getByRole("button", { name: "Upload" }).click();
  const dialog = page.getByRole("dialog", { name: "Upload a price table" });
  const text = dialog.getByRole("textbox", { name: "Price table" });
  await text.fill("not a table");
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect(dialog.getByRole("alert").filter({ hasText: "JSON object" })).toBeVisible();
  await expect(text).toHaveValue("not a table");
  const table = {
    "fresh-model": { input_cost_per_token: 2e-6 },
    "bad-model": { input_cost_per_token: -1 },
  };
  await dialog.locator("input[type=file]").setInputFiles({
    name: "prices.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(table)),
  });
  await expect(dialog.getByText("prices.json")).toBeVisible();
  await dialog.getByRole("button", { name: "Upload" }).click();
  await expect(dialog.getByText("1 added, 0 updated, 0 unchanged, 1 failed.")).toBeVisible();
  await expect(dialog.getByText("input_cost_per_token must not be negative")).toBeVisible();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("searchbox", { name: "Search models" }).fill("fresh");
  await expect(page.getByText("1 of ")).toBeVisible();
  await expect(page.getByRole("cell", { name: "fresh-model" })).toBeVisible();
  await expect(page).toHaveURL(/q=fresh/);
});
