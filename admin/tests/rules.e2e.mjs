/** Sensitive words and error rules: written in the page, in force on the proxy. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
let key;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  const { action, mockUrl } = gateway;
  await action("providers/addProvider", { name: "main", url: mockUrl, key: "mock-key-0123456789" });
  key = (await action("users/addUser", { name: "ann" })).defaultKey.key;
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("a word is refused from the moment it is saved until it is switched off", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/rules`);
  await page.getByText("No sensitive words").waitFor();
  await page.getByRole("button", { name: "Add word" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Compared by").selectOption("regex");
  await form.getByLabel("Pattern").fill("(blue+)+bird");
  await form.getByRole("button", { name: "Create" }).click();
  // Refused in the gateway's words, at the field, and nothing is lost.
  await form.getByRole("alert").filter({ hasText: "a repeat without an upper bound" }).waitFor();
  assert.equal(await form.getByLabel("Pattern").inputValue(), "(blue+)+bird");
  await form.getByLabel("Pattern").fill("blue ?bird");
  await form.getByRole("button", { name: "Create" }).click();
  await form.waitFor({ state: "detached" });

  const asked = () => gateway.ask(key, "claude-sonnet-4-5", "Tell me of project Blue Bird.");
  const refused = await asked();
  assert.equal(refused.status, 403, refused.body);
  assert.doesNotMatch(refused.body, /bird/i);
  await page.getByText("regular expressions 1").waitFor();

  await page.getByRole("switch", { name: "Enabled: blue ?bird" }).click({ force: true });
  await page.getByText("regular expressions 0").waitFor();
  assert.equal((await asked()).status, 200);

  await page.getByRole("cell", { name: "blue ?bird", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: "Delete “blue ?bird”?" }).getByRole("button", { name: "Delete word" }).click();
  await page.getByText("No sensitive words").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("an error that no rule knows becomes a rule, and the client is told what it says", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/rules?view=errors`);
  await page.getByRole("cell", { name: "prompt is too long", exact: true }).waitFor();
  await page.getByRole("button", { name: "Test an error" }).click();
  const message = "the moon is in the wrong house";
  const tester = page.getByRole("dialog", { name: "Test an upstream error" });
  await tester.getByLabel("Error text").fill(JSON.stringify({ error: { type: "odd", message } }));
  await tester.getByLabel("Upstream's status").fill("418");
  await tester.getByRole("button", { name: "Test", exact: true }).click();
  await tester.getByText("the next provider is tried").waitFor();
  await tester.getByRole("button", { name: "Make a rule for it" }).click();

  const form = page.getByRole("dialog", { name: "New error rule" });
  assert.equal(await form.getByLabel("Pattern").inputValue(), message);
  await form.getByLabel("Status").fill("99");
  await form.getByLabel("Message").fill("Ask again tomorrow.");
  await form.getByRole("button", { name: "Create" }).click();
  await form.getByRole("alert").filter({ hasText: "must be at least 400" }).waitFor();
  await form.getByLabel("Status").fill("422");
  await form.getByRole("button", { name: "Create" }).click();
  await form.waitFor({ state: "detached" });
  await page.getByRole("cell", { name: message, exact: true }).waitFor();

  const body = { type: "error", error: { type: "odd", message } };
  await gateway.direct("script?key=mock-key-0123456789", [{ status: 418, body }]);
  const told = await gateway.ask(key);
  assert.equal(told.status, 422, told.body);
  assert.equal(JSON.parse(told.body).error.message, "Ask again tomorrow.");

  await page.getByRole("button", { name: "Test an error" }).click();
  await tester.getByLabel("Error text").fill(message);
  await tester.getByRole("button", { name: "Test", exact: true }).click();
  await tester.getByText("Goes back to the client at once, with status 422").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("a shipped rule that was deleted is restored, and in force again", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/rules?view=errors&q=prompt+is+too+long`);
  await page.getByRole("cell", { name: "prompt is too long", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page
    .getByRole("dialog", { name: /^Delete the rule/ })
    .getByRole("button", { name: "Delete rule" })
    .click();
  await page.getByText("1 shipped rule was removed").click();
  await page.getByRole("button", { name: "Restore" }).click();
  await page.getByText("The rule is back").waitFor();
  await page.getByRole("cell", { name: "prompt is too long", exact: true }).waitFor();
  assert.equal(await page.getByText("1 shipped rule was removed").count(), 0);
  assert.deepEqual(faults, []);
  await context.close();
});
