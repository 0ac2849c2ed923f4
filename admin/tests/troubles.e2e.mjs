/** What goes wrong, and what people see of it: dead providers, wrong keys, spent budgets, one request among many. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

/** Nothing listens there. */
const DEAD = "http://127.0.0.1:9";

let gateway;
let browser;
let context;
let page;
let faults;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  ({ context, page, faults } = await openPage(browser, gateway));
  await logIn(page, gateway);
});
after(async () => {
  await context?.close();
  await browser?.close();
  await gateway?.stop();
});

const key = "mock-key-0123456789";
const dialog = () => page.getByRole("dialog").last();
const field = (name) => dialog().getByLabel(name, { exact: true });

test("a dead provider is seen to be failing, with its cause, in the list, the panel and the overview", async () => {
  const { action, mockUrl } = gateway;
  const fields = { key, circuit_breaker_failure_threshold: 0, max_retry_attempts: 1 };
  await action("providers/addProvider", { ...fields, name: "dead", url: DEAD, group_tag: "dead" });
  await action("providers/addProvider", { ...fields, name: "spare", url: mockUrl });
  const bob = await action("users/addUser", { name: "bob", providerGroup: "dead" });
  await page.goto(`${gateway.url}/providers`);
  const row = page.getByRole("row", { name: /^dead/ });
  // Nobody asked it yet: that is not health.
  await row.getByText("Never used").waitFor();
  for (let times = 0; times < 3; times++) assert.ok((await gateway.ask(bob.defaultKey.key)).status >= 500);
  await row.getByText(/Failing · \d in a row/).waitFor();
  await row.getByText("the connection was refused or failed").waitFor();
  await row.getByText("100%").waitFor();
  await row.click();
  const panel = page.getByRole("dialog", { name: "dead" });
  await panel.getByText(/(\d+) of \1 attempts failed \(100%\)/).waitFor();
  await panel.getByText("Failing since").waitFor();
  await panel.getByText("Last error").waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  const banner = page.getByRole("alert").filter({ hasText: "dead is failing" });
  await banner.getByText("the connection was refused or failed").waitFor();
  await banner.getByRole("link", { name: "Look" }).click();
  await panel.waitFor();
});

test("a provider's test says in words why it failed, and offers the models that the provider lists", async () => {
  await page.goto(`${gateway.url}/providers`);
  await page.getByRole("button", { name: "Add provider" }).first().click();
  const press = () => dialog().getByRole("button", { name: "Test", exact: true }).click();
  // What is missing stands at its field, by the form's own names.
  await press();
  await dialog().getByRole("alert").first().waitFor();
  assert.equal(await field("Address").getAttribute("aria-invalid"), "true");
  assert.equal(
    await dialog()
      .getByText(/url:|key:/)
      .count(),
    0,
  );
  await field("Address").fill(DEAD);
  await field("Credential").fill(key);
  await press();
  await dialog().getByText("The connection to 127.0.0.1:9 was refused.").waitFor();
  await field("Address").fill("http://no-such-host.invalid");
  await press();
  await dialog().getByText("The host name no-such-host.invalid is not known.").waitFor();
  await field("Address").fill(gateway.mockUrl);
  await field("Model for the test").fill("no-such-model");
  const error = { type: "error", error: { type: "not_found_error", message: "model: no-such-model" } };
  await gateway.direct("script", [{ status: 404, body: error }]);
  await press();
  await dialog().getByText("The test failed", { exact: false }).waitFor();
  await dialog().getByRole("button", { name: "bench-json", exact: true }).click();
  await dialog()
    .getByText(/It answers — bench-json/)
    .waitFor();
  // And fills the list of what it takes.
  await dialog().getByRole("button", { name: "Fetch models" }).click();
  await dialog()
    .getByText(/\d+ models? that the provider lists/)
    .waitFor();
  await dialog().getByRole("button", { name: "Remove bench-json" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
});

test("every fault of a form is shown at once, each at its field", async () => {
  await page.goto(`${gateway.url}/providers`);
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await field("Address").fill("nowhere");
  await field("Weight").fill("0");
  await dialog().getByRole("button", { name: "Add provider" }).click();
  await dialog().getByText("must be an http or https address").waitFor();
  for (const name of ["Name", "Address", "Credential", "Weight"])
    assert.equal(await field(name).getAttribute("aria-invalid"), "true", name);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
});

test("a preset fills the form, a copy lacks the credential alone, and all are tested at once", async () => {
  await page.goto(`${gateway.url}/providers`);
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await dialog().getByText("claude-*").waitFor();
  await dialog().getByLabel("Vendor").selectOption({ label: "Mistral" });
  assert.equal(await field("Address").inputValue(), "https://api.mistral.ai");
  assert.equal(await field("Name").inputValue(), "Mistral");
  await dialog().getByText("mistral-*").waitFor();
  assert.equal(await dialog().getByText("claude-*").count(), 0);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();

  await page.getByRole("row", { name: /^spare/ }).click();
  await page.getByRole("dialog", { name: "spare" }).getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Copy" }).click();
  assert.equal(await field("Name").inputValue(), "spare copy");
  assert.equal(await field("Address").inputValue(), gateway.mockUrl);
  assert.equal(await field("Credential").inputValue(), "");
  await field("Credential").fill(key);
  await dialog().getByRole("button", { name: "Add provider" }).click();
  await page.getByRole("row", { name: /^spare copy/ }).waitFor();

  // The panel lies over the page's buttons.
  await page.getByRole("dialog", { name: "spare" }).getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Test all" }).click();
  await dialog()
    .getByRole("button", { name: /Test 3 providers/ })
    .click();
  await dialog().getByText("It answers").nth(1).waitFor();
  await dialog()
    .getByText(/was refused/)
    .first()
    .waitFor();
  await dialog().getByRole("button", { name: "Close" }).last().click();
});

test("requests with a wrong key are listed, without the key", async () => {
  const wrong = `sk-${"0".repeat(32)}`;
  for (let times = 0; times < 2; times++) assert.equal((await gateway.ask(wrong)).status, 401);
  await page.goto(`${gateway.url}/rejected`);
  const row = page.locator("tbody tr[data-row]").filter({ hasText: "unknown key" });
  await row.first().waitFor();
  await row.filter({ hasText: "127.0.0.1" }).filter({ hasText: "/v1/messages" }).first().waitFor();
  assert.ok(!(await page.content()).includes(wrong));
});

test("a list says what is spent of the tightest limit, and when somebody was last seen", async () => {
  const ada = await gateway.action("users/addUser", { name: "ada", limitDailyUsd: 2, limitMonthlyUsd: 100 });
  await page.goto(`${gateway.url}/people`);
  const row = page.getByRole("row", { name: /^ada/ });
  await row.getByText("never", { exact: true }).first().waitFor();
  await gateway.direct("script", [{ usage: { input: 0, output: 100_000 } }]);
  assert.equal((await gateway.ask(ada.defaultKey.key)).status, 200);
  await page.waitForTimeout(2_000);
  await page.reload();
  await row.getByText("$1.50").waitFor();
  await row.getByText("daily", { exact: true }).waitFor();
  assert.equal(await row.getByText("never", { exact: true }).count(), 1, "its expiry alone");
});

test("a request is found by the id that its client was told", async () => {
  const ada = await gateway.action("users/addUser", { name: "eva" });
  const body = JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 9, messages: [{ role: "user", content: "x" }] });
  const headers = { "content-type": "application/json", "x-api-key": ada.defaultKey.key };
  const reply = await fetch(`${gateway.proxy}/v1/messages`, { method: "POST", headers, body });
  await reply.text();
  const id = reply.headers.get("x-tollgate-request-id");
  assert.ok(id);
  await page.waitForTimeout(2_000);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill(id);
  await page.getByRole("option", { name: /Request/ }).click();
  await page.waitForURL(/\/logs\?/);
  await page.getByRole("dialog", { name: "claude-haiku-4-5" }).waitFor();
  await page.locator("tbody tr[data-row]").first().waitFor();
  assert.equal(await page.locator("tbody tr[data-row]").count(), 1);
});

test("there was no error on the console, and no request to elsewhere", () => assert.deepEqual(faults, []));
