/** Sensitive words and error rules: created in the UI, applied by the proxy. */
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

let key;
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider();
  key = (await gateway.addUser("ann")).defaultKey.key;
});

test("a word is refused from the moment it is saved until it is switched off", async ({
  gateway,
  page,
}) => {
  await authenticate(page);
  await page.goto("/rules");
  await expect(page.getByText("No sensitive words")).toBeVisible();
  await page.getByRole("button", { name: "Add word" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Compared by").selectOption("regex");
  await form.getByLabel("Pattern").fill("(blue+)+bird");
  await form.getByRole("button", { name: "Create" }).click();
  // Refused at the field, with the gateway's message, and all input is kept.
  await expect(
    form.getByRole("alert").filter({ hasText: "a repeat without an upper bound" }),
  ).toBeVisible();
  await expect(form.getByLabel("Pattern")).toHaveValue("(blue+)+bird");
  await form.getByLabel("Pattern").fill("blue ?bird");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(form).toHaveCount(0);

  const asked = () => gateway.ask(key, "claude-sonnet-4-5", "Tell me of project Blue Bird.");
  const refused = await asked();
  expect(refused.status, refused.body).toBe(403);
  expect(refused.body).not.toMatch(/bird/i);
  await expect(page.getByText("regular expressions 1")).toBeVisible();

  await page.getByRole("switch", { name: "Enabled: blue ?bird" }).click({ force: true });
  await expect(page.getByText("regular expressions 0")).toBeVisible();
  expect((await asked()).status).toBe(200);

  await page.getByRole("cell", { name: "blue ?bird", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page
    .getByRole("dialog", { name: "Delete “blue ?bird”?" })
    .getByRole("button", { name: "Delete word" })
    .click();
  await expect(page.getByText("No sensitive words")).toBeVisible();
});

test("an error that no rule knows becomes a rule, and the client is told what it says", async ({
  gateway,
  page,
}) => {
  await authenticate(page);
  await page.goto("/rules?view=errors");
  await expect(page.getByRole("cell", { name: "prompt is too long", exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Test an error" }).click();
  const message = "the moon is in the wrong house";
  const tester = page.getByRole("dialog", { name: "Test an upstream error" });
  await tester.getByLabel("Error text").fill(JSON.stringify({ error: { type: "odd", message } }));
  await tester.getByLabel("Upstream's status").fill("418");
  await tester.getByRole("button", { name: "Test", exact: true }).click();
  await expect(tester.getByText("the next provider is tried")).toBeVisible();
  await tester.getByRole("button", { name: "Make a rule for it" }).click();

  const form = page.getByRole("dialog", { name: "New error rule" });
  await expect(form.getByLabel("Pattern")).toHaveValue(message);
  await form.getByLabel("Status").fill("99");
  await form.getByLabel("Message").fill("Ask again tomorrow.");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(form.getByRole("alert").filter({ hasText: "must be at least 400" })).toBeVisible();
  await form.getByLabel("Status").fill("422");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(form).toHaveCount(0);
  await expect(page.getByRole("cell", { name: message, exact: true })).toBeVisible();

  const body = { type: "error", error: { type: "odd", message } };
  await gateway.direct("script?key=mock-key-0123456789", [{ status: 418, body }]);
  const told = await gateway.ask(key);
  expect(told.status, told.body).toBe(422);
  expect(JSON.parse(told.body).error.message).toBe("Ask again tomorrow.");

  await page.getByRole("button", { name: "Test an error" }).click();
  await tester.getByLabel("Error text").fill(message);
  await tester.getByRole("button", { name: "Test", exact: true }).click();
  await expect(tester.getByText("Goes back to the client at once, with status 422")).toBeVisible();
});

test("a shipped rule that was deleted is restored, and in force again", async ({ page }) => {
  await authenticate(page);
  await page.goto("/rules?view=errors&q=prompt+is+too+long");
  await page.getByRole("cell", { name: "prompt is too long", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page
    .getByRole("dialog", { name: /^Delete the rule/ })
    .getByRole("button", { name: "Delete rule" })
    .click();
  await page.getByText("1 shipped rule was removed").click();
  await page.getByRole("button", { name: "Restore" }).click();
  await expect(page.getByText("The rule is back")).toBeVisible();
  await expect(page.getByRole("cell", { name: "prompt is too long", exact: true })).toBeVisible();
  await expect(page.getByText("1 shipped rule was removed")).toHaveCount(0);
});
