/** Users and keys in the UI: creation, changes, deletion, and a reached limit. */
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

test.beforeEach(({ page }) => authenticate(page));

/** A user with two keys: `default` and `cli`. */
async function addAnn(gateway, fields = {}) {
  const ann = await gateway.addUser("ann", fields);
  await gateway.action("keys/addKey", { userId: ann.user.id, name: "cli" });
  return ann;
}

test("a user and a key are created, the key is shown once and works", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await gateway.addProvider();
  await page.goto("/dashboard");
  await page.getByRole("link", { name: "People", exact: true }).click();
  await page.getByRole("button", { name: "New user" }).first().click();
  await field("Name").fill("ann");
  await field("Daily").fill("0.5");
  await dialog.getByRole("button", { name: "Create" }).click();
  const key = await page.getByTestId("new-key").textContent();
  expect(key).toMatch(/^sk-[0-9a-f]{32}$/);
  await page.getByRole("button", { name: "I have kept it" }).click();
  expect((await gateway.ask(key)).status).toBe(200);
  // The panel of the new user is open; add a second key for a machine.
  await page.getByRole("button", { name: "Add key" }).click();
  await page
    .getByRole("dialog", { name: "New key" })
    .getByLabel("Name", { exact: true })
    .fill("cli");
  await page
    .getByRole("dialog", { name: "New key" })
    .getByLabel("Daily", { exact: true })
    .fill("9999");
  await page.getByRole("button", { name: "Create" }).click();
  // Above the user's own limit: refused at the field, with the gateway's message.
  const fault = page.getByRole("dialog", { name: "New key" }).getByRole("alert");
  await expect(
    fault.filter({ hasText: "the daily limit (9999) of the key is above the user's (0.5)" }),
  ).toBeVisible();
  await expect(page.getByLabel("Daily", { exact: true }).last()).toHaveAttribute(
    "aria-describedby",
    /error/,
  );
  await page
    .getByRole("dialog", { name: "New key" })
    .getByLabel("Daily", { exact: true })
    .fill("0.25");
  await page.getByRole("button", { name: "Create" }).click();
  const second = await page.getByTestId("new-key").textContent();
  await page.getByRole("button", { name: "I have kept it" }).click();
  expect((await gateway.ask(second)).status).toBe(200);
  expect(await page.content(), "a key is shown once").not.toContain(key);
});

test("a user's limit below that of a key is refused at the field, and the key is named", async ({
  gateway,
  page,
}) => {
  const { user } = await addAnn(gateway, { limitDailyUsd: 5 });
  const [{ keys }] = await gateway.action("users/getUsers");
  const cli = keys.find((key) => key.name === "cli");
  await gateway.action("keys/editKey", { keyId: cli.id, limitDailyUsd: 3 });
  const refused = async (words, [edit, title, daily, save]) => {
    await page.goto(`/people?user=${user.id}`);
    await page.getByRole("button", { name: edit, exact: true }).click();
    const form = page.getByRole("dialog", { name: title });
    const field = form.getByLabel(daily, { exact: true });
    await field.fill("2");
    await form.getByRole("button", { name: save }).click();
    await expect(form.getByText(words)).toBeVisible();
    await expect(field).toHaveAttribute("aria-invalid", "true");
    await expect(field).toBeFocused();
  };
  const words = `the daily limit (3) of the key "cli" is above the user's (2)`;
  await refused(words, ["Edit", "Edit ann", "Daily", "Save"]);
  await page.evaluate(() => localStorage.setItem("tollgate.language", "zh"));
  await refused("密钥“cli”的每日限额（3）高于用户的限额（2）", [
    "编辑",
    "编辑 ann",
    "每日",
    "保存",
  ]);
});

test("Back closes a panel that was opened on its page, and so does its button", async ({
  gateway,
  page,
}) => {
  await addAnn(gateway);
  await gateway.addUser("bob");
  await page.goto("/dashboard");
  await page.getByRole("link", { name: "People", exact: true }).click();
  const [list, panel] = [/\/people$/, page.getByRole("dialog")];
  const open = (name) => page.getByRole("row", { name }).click();
  await open(/^ann/);
  await expect(page).toHaveURL(/\/people\?user=/);
  // Another row takes the place of the first.
  await open(/^bob/);
  await expect(page.getByRole("dialog", { name: "bob" })).toBeVisible();
  await page.goBack();
  await expect(page).toHaveURL(list);
  await expect(panel).toHaveCount(0);
  await page.goForward();
  await expect(page.getByRole("dialog", { name: "bob" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page).toHaveURL(list);
  // The button leaves nothing behind that Back would have to pass.
  await page.goBack();
  await expect(page).toHaveURL(/\/dashboard/);
  // A link opens the panel alone: its button shows the list.
  await page.goto("/people?user=1");
  await expect(page.getByRole("dialog", { name: "ann" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page).toHaveURL(list);
});

test("users see what is spent of their own limits, and when it was used", async ({
  gateway,
  page,
}) => {
  await gateway.addProvider();
  const { key } = (await gateway.addUser("ann", { limitDailyUsd: 5 })).defaultKey;
  expect((await gateway.ask(key)).status).toBe(200);
  await gateway.logged(1);
  await authenticate(page, key);
  await page.goto("/people");
  const row = page.getByRole("row", { name: /^ann/ });
  await expect(row).toContainText("/ $5.00");
  await expect(row).not.toContainText("no limit");
  await expect(row).toContainText(/now|sec\. ago/);
});

test("the keys of a disabled user are shown as such", async ({ gateway, page }) => {
  const { user } = await addAnn(gateway);
  await gateway.action("users/editUser", { userId: user.id, isEnabled: false });
  await page.goto("/people?view=keys");
  await expect(page.getByRole("row", { name: /^(Select row )?cli/ })).toContainText(
    "User disabled",
  );
  await page.goto("/people?view=keys&state=enabled");
  await expect(page.getByText("cli")).toHaveCount(0);
});

test("a user that expires is shown as expired, without an event", async ({ gateway, page }) => {
  const expiresAt = new Date(Date.now() + 5_000).toISOString();
  await gateway.addUser("ann", { expiresAt });
  await page.goto("/people");
  const row = page.getByRole("row", { name: /^ann/ });
  await expect(row).toContainText("Enabled");
  await expect(row).toContainText("Expired");
});

test("many keys change at once", async ({ gateway, page, dialog }) => {
  await addAnn(gateway);
  await page.goto("/people?view=keys");
  await page.getByLabel("Select all rows").check();
  await page.getByRole("button", { name: "Edit 2 keys" }).click();
  await dialog.getByRole("textbox", { name: "Weekly" }).fill("3");
  await dialog.getByRole("button", { name: "Change 2 keys" }).click();
  await expect(page.getByText("2 keys changed")).toBeVisible();
  const [user] = await gateway.action("users/getUsers");
  expect(user.keys.map((one) => one.limitWeeklyUsd)).toEqual([3, 3]);
  // Both at once would leave no usable key: refused completely, with a message.
  await page.getByLabel("Select all rows").check();
  await page.getByRole("button", { name: "Edit 2 keys" }).click();
  await dialog.getByRole("combobox", { name: "Enabled" }).selectOption("false");
  await dialog.getByRole("button", { name: "Change 2 keys" }).click();
  await expect(dialog.getByRole("alert").first()).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();
});

test("the last usable key cannot be deleted, and the page says why", async ({ gateway, page }) => {
  await gateway.addProvider();
  const { user, defaultKey } = await addAnn(gateway);
  await page.goto(`/people?user=${user.id}`);
  for (const name of ["cli", "default"]) {
    await page.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: "Delete key" }).click();
    await page.getByRole("button", { name: "Delete key" }).click();
    await expect(
      page.getByText(name === "cli" ? "cli is deleted" : /last usable key/i),
    ).toBeVisible();
  }
  expect((await gateway.ask(defaultKey.key)).status).toBe(200);
});

test("a limit that is reached refuses, and is seen", async ({ gateway, page }) => {
  await gateway.addProvider();
  const { key } = (await gateway.addUser("ann", { limitDailyUsd: 0.5 })).defaultKey;
  await gateway.direct("script", [{ usage: { input: 400_000, output: 100_000 } }]);
  expect((await gateway.ask(key)).status).toBe(200);
  const refused = await gateway.ask(key);
  expect(refused.status).toBe(429);
  expect(refused.body).toMatch(/user_daily/);
  await page.goto("/dashboard");
  await expect(page.getByText("ann has reached a limit")).toBeVisible();
  await page.getByRole("link", { name: "Look" }).click();
  await expect(page.getByText("Used of the limits")).toBeVisible();
  await expect(page.getByText(/^\d{3,}%$/).first()).toBeVisible();
});
