/** What people do with it, from an empty gateway on: each journey begins where the one before ended. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
let context;
let page;
let faults;
/** The key that was created in the page. */
let key;

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

const dialog = () => page.getByRole("dialog");
const field = (name) => dialog().getByLabel(name, { exact: true });

test("a new gateway leads through its first steps", async () => {
  await page.goto(`${gateway.url}/dashboard`);
  await page.getByRole("heading", { name: "Five steps to the first request" }).waitFor();
  await page.getByRole("link", { name: /Add a provider/ }).click();
  await page.getByRole("heading", { name: "No providers yet" }).waitFor();
});

test("a provider is added, with faults at their fields in the gateway's words", async () => {
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await field("Name").fill("mock");
  await field("Address").fill("not an address");
  await field("Credential").fill("a-credential-0123456789");
  await dialog().getByRole("button", { name: "Add provider" }).click();
  await dialog().getByRole("alert").first().waitFor();
  // Nothing that was typed is lost.
  assert.equal(await field("Name").inputValue(), "mock");
  await field("Address").fill(gateway.mockUrl);
  await dialog().getByRole("button", { name: "Add provider" }).click();
  await page.getByRole("cell", { name: "mock", exact: true }).waitFor();
  await page.getByRole("cell", { name: "Never used" }).waitFor();
});

test("a provider's test says what it answered, or why it did not", async () => {
  await page.getByRole("cell", { name: "mock", exact: true }).click();
  const panel = page.getByRole("dialog", { name: "mock" });
  await panel.getByLabel("Model for the test").fill("claude-haiku-4-5");
  await panel.getByRole("button", { name: "Test", exact: true }).click();
  await panel.getByText(/It answers — claude-haiku-4-5 · HTTP 200/).waitFor();
  await panel.getByText("This is claude-haiku-4-5, the mock model.").waitFor();
  const body = { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } };
  await gateway.direct("script", [{ status: 401, body }]);
  await panel.getByRole("button", { name: "Test", exact: true }).click();
  await panel.getByRole("alert").filter({ hasText: "The test failed — claude-haiku-4-5 · HTTP 401" }).waitFor();
  await panel.getByText("invalid x-api-key").waitFor();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
});

test("another address asks for the credential again, and says why", async () => {
  await page.getByRole("cell", { name: "mock", exact: true }).click();
  await page.getByRole("dialog", { name: "mock" }).getByRole("button", { name: "Edit", exact: true }).click();
  const edit = page.getByRole("dialog", { name: "Edit mock" });
  const why = edit.getByTestId("key-wanted");
  await edit.getByText("Leave empty to keep it.").waitFor();
  await edit.getByLabel("Address", { exact: true }).fill(`${gateway.mockUrl}/v1`);
  assert.equal(await why.count(), 0, "another path is the same receiver");
  await edit.getByLabel("Address", { exact: true }).fill("http://127.0.0.1:9");
  await why.filter({ hasText: `the stored one is only sent to ${new URL(gateway.mockUrl).host}` }).waitFor();
  await edit.getByRole("button", { name: "Test", exact: true }).click();
  await edit.getByText("enter it again: the stored key is only sent to").waitFor();
  await edit.getByRole("button", { name: "Save", exact: true }).click();
  const key = edit.getByLabel("Credential", { exact: true });
  await edit.getByRole("alert").filter({ hasText: "enter it again" }).first().waitFor();
  assert.match(await key.getAttribute("aria-describedby"), /error/);
  // The proxy counts as well; with the credential it is saved.
  await edit.getByLabel("Address", { exact: true }).fill(gateway.mockUrl);
  await edit.getByLabel("HTTP proxy", { exact: true }).fill("http://127.0.0.1:9");
  await why.filter({ hasText: "the HTTP proxy was changed" }).waitFor();
  await edit.getByLabel("HTTP proxy", { exact: true }).fill("");
  await edit.getByLabel("Address", { exact: true }).fill(`${gateway.mockUrl}/v1`);
  await key.fill("another-credential-9876543210");
  await edit.getByRole("button", { name: "Save", exact: true }).click();
  await edit.waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("unsaved changes are not thrown away without asking", async () => {
  await page.getByRole("button", { name: "Add provider" }).click();
  await field("Name").fill("half");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).last().click();
  assert.equal(await field("Name").inputValue(), "half");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
  await dialog().waitFor({ state: "detached" });
});

test("a user and a key are created, the key is shown once and works", async () => {
  await page.getByRole("link", { name: "People", exact: true }).click();
  await page.getByRole("button", { name: "New user" }).first().click();
  await field("Name").fill("ann");
  await field("Daily").fill("0.5");
  await dialog().getByRole("button", { name: "Create" }).click();
  key = await page.getByTestId("new-key").textContent();
  assert.match(key, /^sk-[0-9a-f]{32}$/);
  await page.getByRole("button", { name: "I have kept it" }).click();
  assert.equal((await gateway.ask(key)).status, 200);
  // The panel of the new user is open; a second key for a machine.
  await page.getByRole("button", { name: "Add key" }).click();
  await page.getByRole("dialog", { name: "New key" }).getByLabel("Name", { exact: true }).fill("cli");
  await page.getByRole("dialog", { name: "New key" }).getByLabel("Daily", { exact: true }).fill("9999");
  await page.getByRole("button", { name: "Create" }).click();
  // Above the user's own limit: refused at the field, in the gateway's words.
  const fault = page.getByRole("dialog", { name: "New key" }).getByRole("alert");
  await fault.filter({ hasText: "the key's daily limit (9999) is above the user's (0.5)" }).waitFor();
  const described = await page.getByLabel("Daily", { exact: true }).last().getAttribute("aria-describedby");
  assert.match(described, /error/);
  await page.getByRole("dialog", { name: "New key" }).getByLabel("Daily", { exact: true }).fill("0.25");
  await page.getByRole("button", { name: "Create" }).click();
  const second = await page.getByTestId("new-key").textContent();
  await page.getByRole("button", { name: "I have kept it" }).click();
  assert.equal((await gateway.ask(second)).status, 200);
  assert.ok(!(await page.content()).includes(key), "a key is shown once");
});

test("the log shows a request as it ends, and tells its story", async () => {
  // What was asked before is in the database, so that the page begins with it.
  for (let tries = 0; (await gateway.action("usage-logs/getUsageLogs")).total < 2; tries++) {
    assert.ok(tries < 100, "the log stays empty");
    await page.waitForTimeout(100);
  }
  await page.goto(`${gateway.url}/logs`);
  const rows = page.locator("tbody tr[data-row]");
  await rows.nth(1).waitFor();
  const before = await rows.count();
  assert.equal((await gateway.ask(key, "claude-haiku-4-5", "Something new")).status, 200);
  // The event stream brings it: nothing is reloaded.
  await rows.filter({ hasText: "claude-haiku-4-5" }).first().waitFor();
  assert.equal(await rows.count(), before + 1);
  await rows.filter({ hasText: "claude-haiku-4-5" }).first().click();
  await page.getByText("What happened").waitFor();
  await page.getByText("Tokens and cost").waitFor();
});

test("many keys change at once", async () => {
  await page.goto(`${gateway.url}/people?view=keys`);
  await page.getByLabel("Select all rows").check();
  await page.getByRole("button", { name: "Edit 2 keys" }).click();
  await dialog().getByRole("textbox", { name: "Weekly" }).fill("3");
  await dialog().getByRole("button", { name: "Change 2 keys" }).click();
  await page.getByText("2 keys changed").waitFor();
  const [user] = await gateway.action("users/getUsers");
  assert.deepEqual(
    user.keys.map((one) => one.limitWeeklyUsd),
    [3, 3],
  );
  // Both at once would leave no usable key: refused as a whole, in words.
  await page.getByLabel("Select all rows").check();
  await page.getByRole("button", { name: "Edit 2 keys" }).click();
  await dialog().getByRole("combobox", { name: "Enabled" }).selectOption("false");
  await dialog().getByRole("button", { name: "Change 2 keys" }).click();
  await dialog().getByRole("alert").first().waitFor();
  await dialog().getByRole("button", { name: "Cancel" }).click();
});

test("the last usable key cannot be deleted, and the page says why", async () => {
  const [user] = await gateway.action("users/getUsers");
  await page.goto(`${gateway.url}/people?user=${user.id}`);
  for (const name of ["cli", "default"]) {
    await page.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: "Delete key" }).click();
    await page.getByRole("button", { name: "Delete key" }).click();
    await page.getByText(name === "cli" ? "cli is deleted" : /last usable key/i).waitFor();
  }
  assert.equal((await gateway.ask(key)).status, 200);
});

test("a limit that is reached refuses, and is seen", async () => {
  await gateway.direct("script", [{ usage: { input: 400_000, output: 100_000 } }]);
  assert.equal((await gateway.ask(key)).status, 200);
  const refused = await gateway.ask(key);
  assert.equal(refused.status, 429);
  assert.match(refused.body, /user_daily/);
  await page.goto(`${gateway.url}/dashboard`);
  await page.getByText("ann has reached a limit").waitFor();
  await page.getByRole("link", { name: "Look" }).first().click();
  await page.getByText("Used of the limits").waitFor();
  await page
    .getByText(/^\d{3,}%$/)
    .first()
    .waitFor();
});

test("a circuit that trips shows by itself, and a reset closes it", async () => {
  await gateway.action("providers/addProvider", {
    name: "fragile",
    url: gateway.mockUrl,
    key: "fragile-key-0123456789",
    group_tag: "fragile",
    circuit_breaker_failure_threshold: 1,
    max_retry_attempts: 1,
  });
  const bob = await gateway.action("users/addUser", { name: "bob", providerGroup: "fragile" });
  await page.goto(`${gateway.url}/providers`);
  await page
    .getByRole("row", { name: /fragile/ })
    .getByText("Never used")
    .waitFor();
  await gateway.direct("default?key=fragile-key-0123456789", { status: 500 });
  assert.ok((await gateway.ask(bob.defaultKey.key)).status >= 500);
  // The event stream brings it: nothing is reloaded.
  await page
    .getByRole("row", { name: /fragile/ })
    .getByText("Circuit open")
    .waitFor();
  await page.getByRole("tab", { name: "How selection works" }).click();
  await page.getByLabel("Groups of the key").fill("fragile");
  await page.getByText("No provider is available").waitFor();
  await page.getByRole("tab", { name: "List" }).click();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText("fragile gets no requests").waitFor();
  await page.getByRole("link", { name: "Look" }).first().click();
  await page.getByRole("button", { name: "Reset circuit" }).click();
  await page.getByRole("dialog").getByText("Never used").waitFor();
  await gateway.direct("default?key=fragile-key-0123456789", {});
  assert.equal((await gateway.ask(bob.defaultKey.key)).status, 200);
});

test("the palette goes anywhere, and the language can be changed", async () => {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill("bob");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/people\?user=/);
  await page.getByRole("dialog", { name: "bob" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "中文" }).click();
  await page.getByRole("heading", { name: "用户与密钥" }).waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "zh");
});

test("there was no error on the console, and no request to elsewhere", () => assert.deepEqual(faults, []));
