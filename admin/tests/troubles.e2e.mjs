/**
 * Faults, and how the UI shows them: providers that are down, invalid forms, wrong keys, used-up
 * budgets.
 */
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

/** No program listens there. */
const DEAD = "http://127.0.0.1:9";

/** The circuit never opens, and one failed attempt fails the request. */
const FRAGILE = { circuit_breaker_failure_threshold: 0, max_retry_attempts: 1 };

test.beforeEach(({ page }) => authenticate(page));

test("list, panel and overview show that a provider is failing, with the cause", async ({
  gateway,
  page,
}) => {
  await gateway.addProvider({ ...FRAGILE, name: "dead", url: DEAD, group_tag: "dead" });
  await gateway.addProvider({ ...FRAGILE, name: "spare" });
  const bob = await gateway.addUser("bob", { providerGroup: "dead" });
  await page.goto("/providers");
  const row = page.getByRole("row", { name: /^dead/ });
  // It had no request yet, so its health is unknown.
  await expect(row.getByText("Never used")).toBeVisible();
  for (let times = 0; times < 3; times++) {
    expect((await gateway.ask(bob.defaultKey.key)).status).toBeGreaterThanOrEqual(500);
  }
  await expect(row.getByText(/Failing · \d in a row/)).toBeVisible();
  await expect(row.getByText("the connection was refused or failed")).toBeVisible();
  await expect(row.getByText("100%")).toBeVisible();
  await row.click();
  const panel = page.getByRole("dialog", { name: "dead" });
  await expect(panel.getByText(/(\d+) of \1 attempts failed \(100%\)/)).toBeVisible();
  await expect(panel.getByText("Failing since")).toBeVisible();
  await expect(panel.getByText("Last error")).toBeVisible();
  await page.getByRole("link", { name: "Overview" }).click();
  const banner = page.getByRole("alert").filter({ hasText: "dead is failing" });
  await expect(banner.getByText("the connection was refused or failed")).toBeVisible();
  await banner.getByRole("link", { name: "Look" }).click();
  await expect(panel).toBeVisible();
});

test("a provider's test shows why it failed, and offers the models that it lists", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await page.goto("/providers");
  await page.getByRole("button", { name: "Add provider" }).first().click();
  const press = () => dialog.last().getByRole("button", { name: "Test", exact: true }).click();
  // Each missing value is named at its field, with the form's own text.
  await press();
  await expect(dialog.last().getByRole("alert").first()).toBeVisible();
  await expect(field("Address")).toHaveAttribute("aria-invalid", "true");
  await expect(dialog.last().getByText(/url:|key:/)).toHaveCount(0);
  await field("Address").fill(DEAD);
  await field("Credential").fill("mock-key-0123456789");
  await press();
  await expect(dialog.last().getByText("The connection to 127.0.0.1:9 was refused.")).toBeVisible();
  await field("Address").fill("http://no-such-host.invalid");
  await press();
  await expect(
    dialog.last().getByText("The host name no-such-host.invalid is not known."),
  ).toBeVisible();
  await field("Address").fill(gateway.mockUrl);
  await field("Model for the test").fill("no-such-model");
  const error = {
    type: "error",
    error: { type: "not_found_error", message: "model: no-such-model" },
  };
  await gateway.direct("script", [{ status: 404, body: error }]);
  await press();
  await expect(dialog.last().getByText("The test failed", { exact: false })).toBeVisible();
  await dialog.last().getByRole("button", { name: "bench-json", exact: true }).click();
  await expect(dialog.last().getByText(/It answers — bench-json/)).toBeVisible();
  // It also fills the list of allowed models.
  await dialog.last().getByRole("button", { name: "Fetch models" }).click();
  await expect(dialog.last().getByText(/\d+ models? that the provider lists/)).toBeVisible();
  await expect(dialog.last().getByRole("button", { name: "Remove bench-json" })).toBeVisible();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
});

test("every fault of a form is shown at once, each at its field", async ({
  page,
  dialog,
  field,
}) => {
  await page.goto("/providers");
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await field("Address").fill("nowhere");
  await field("Weight").fill("0");
  await dialog.last().getByRole("button", { name: "Add provider" }).click();
  await expect(dialog.last().getByText("must be an http or https address")).toBeVisible();
  for (const name of ["Name", "Address", "Credential", "Weight"])
    await expect(field(name)).toHaveAttribute("aria-invalid", "true");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
});

test("a preset fills the form, a copy lacks only the credential, and all can be tested", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await gateway.addProvider({ ...FRAGILE, name: "dead", url: DEAD, group_tag: "dead" });
  await gateway.addProvider({ ...FRAGILE, name: "spare" });
  await page.goto("/providers");
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await expect(dialog.last().getByText("claude-*")).toBeVisible();
  await dialog.last().getByLabel("Vendor").selectOption({ label: "Mistral" });
  await expect(field("Address")).toHaveValue("https://api.mistral.ai");
  await expect(field("Name")).toHaveValue("Mistral");
  await expect(dialog.last().getByText("mistral-*")).toBeVisible();
  await expect(dialog.last().getByText("claude-*")).toHaveCount(0);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();

  await page.getByRole("row", { name: /^spare/ }).click();
  await page.getByRole("dialog", { name: "spare" }).getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Copy" }).click();
  await expect(field("Name")).toHaveValue("spare copy");
  await expect(field("Address")).toHaveValue(gateway.mockUrl);
  await expect(field("Credential")).toHaveValue("");
  await field("Credential").fill("mock-key-0123456789");
  await dialog.last().getByRole("button", { name: "Add provider" }).click();
  await expect(page.getByRole("row", { name: /^spare copy/ })).toBeVisible();

  // The panel lies over the page's buttons.
  await page.getByRole("dialog", { name: "spare" }).getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Test all" }).click();
  await dialog
    .last()
    .getByRole("button", { name: /Test 3 providers/ })
    .click();
  await expect(dialog.last().getByText("It answers").nth(1)).toBeVisible();
  await expect(
    dialog
      .last()
      .getByText(/was refused/)
      .first(),
  ).toBeVisible();
  await dialog.last().getByRole("button", { name: "Close" }).last().click();
});

test("requests with a wrong key are listed, without the key", async ({ gateway, page }) => {
  const wrong = `sk-${"0".repeat(32)}`;
  for (let times = 0; times < 2; times++) expect((await gateway.ask(wrong)).status).toBe(401);
  await page.goto("/rejected");
  const row = page.locator("tbody tr[data-row]").filter({ hasText: "unknown key" });
  await expect(row.first()).toBeVisible();
  await expect(
    row.filter({ hasText: "127.0.0.1" }).filter({ hasText: "/v1/messages" }).first(),
  ).toBeVisible();
  expect(await page.content()).not.toContain(wrong);
});

test("a list says what is spent of the tightest limit, and when a user was last seen", async ({
  gateway,
  page,
}) => {
  await gateway.addProvider();
  const ada = await gateway.addUser("ada", { limitDailyUsd: 2, limitMonthlyUsd: 100 });
  await page.goto("/people");
  const row = page.getByRole("row", { name: /^ada/ });
  await expect(row.getByText("never", { exact: true }).first()).toBeVisible();
  await gateway.direct("script", [{ usage: { input: 0, output: 100_000 } }]);
  expect((await gateway.ask(ada.defaultKey.key)).status).toBe(200);
  await gateway.logged(1);
  await page.reload();
  await expect(row.getByText("$1.50")).toBeVisible();
  await expect(row.getByText("daily", { exact: true })).toBeVisible();
  await expect(row.getByText("never", { exact: true }), "its expiry alone").toHaveCount(1);
});

test("a request is found by the id that its client was told", async ({ gateway, page }) => {
  await gateway.addProvider();
  const eva = await gateway.addUser("eva");
  const body = JSON.stringify({
    model: "claude-haiku-4-5",
    max_tokens: 9,
    messages: [{ role: "user", content: "x" }],
  });
  const headers = { "content-type": "application/json", "x-api-key": eva.defaultKey.key };
  const reply = await fetch(`${gateway.proxy}/v1/messages`, { method: "POST", headers, body });
  await reply.text();
  const id = reply.headers.get("x-tollgate-request-id");
  expect(id).toBeTruthy();
  await gateway.logged(1);
  await page.goto("/dashboard");
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill(id);
  await page.getByRole("option", { name: /Request/ }).click();
  await expect(page).toHaveURL(/\/logs\?/);
  await expect(page.getByRole("dialog", { name: "claude-haiku-4-5" })).toBeVisible();
  await expect(page.locator("tbody tr[data-row]").first()).toBeVisible();
  await expect(page.locator("tbody tr[data-row]")).toHaveCount(1);
});
