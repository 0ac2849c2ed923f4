/** What a person entered is kept, or the reason is shown: session ends, dates, addresses, JSON. */
import { authenticate, logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";
import { TOKEN } from "./gateway.mjs";

let ann;
test.use({ settings: { STORE_SESSION_MESSAGES: "true" } });
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider();
  ann = await gateway.addUser("ann", { expiresAt: "2027-03-01" });
});

test("a form outlives its session: its input is saved after a login in another tab", async ({
  context,
  gateway,
  page,
  dialog,
  field,
}) => {
  await logIn(page);
  await page.goto(`/people?user=${ann.user.id}`);
  await page.getByRole("dialog", { name: "ann" }).getByRole("button", { name: "Edit" }).click();
  await field("Note").fill("written before the session ended");
  await context.clearCookies();
  const question = page.getByRole("dialog", { name: "Your session has ended" });
  // Another read of the page may have come first.
  await expect(async () => {
    if (!(await question.isVisible()))
      await dialog.last().getByRole("button", { name: "Save" }).click({ timeout: 2_000 });
    await expect(question.getByText("What you typed is kept.")).toBeVisible({ timeout: 4_000 });
  }).toPass();
  const [other] = await Promise.all([
    context.waitForEvent("page"),
    question.getByRole("button", { name: "Log in in another tab" }).click(),
  ]);
  await other.getByLabel(/token or key/i).fill(TOKEN);
  await other.keyboard.press("Enter");
  await expect(other).toHaveURL(/\/dashboard/);
  await expect(field("Note")).toHaveValue("written before the session ended");
  await dialog.last().getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const [saved] = await gateway.action("users/getUsers");
  expect(saved.note).toBe("written before the session ended");
});

test("a click on a message does not close the form below it", async ({ page, dialog, field }) => {
  await authenticate(page);
  await page.goto(`/people?user=${ann.user.id}`);
  const edit = page.getByRole("dialog", { name: "ann" }).getByRole("button", { name: "Edit" });
  await edit.click();
  await field("Note").fill("first");
  await dialog.last().getByRole("button", { name: "Save" }).click();
  const message = page.locator("[data-message]").filter({ hasText: "Saved" });
  await expect(message).toBeVisible();
  await edit.click();
  await field("Note").fill("second");
  await message.click();
  await expect(page.getByText("Discard your changes?")).toHaveCount(0);
  await expect(field("Note")).toHaveValue("second");
});

test("a tab notices that another one logged in as another user", async ({ context, page }) => {
  await logIn(page);
  await page.goto("/providers");
  await expect(page.getByRole("row", { name: /^main/ }).first()).toBeVisible();
  const other = await context.newPage();
  await other.goto("/dashboard");
  await other.getByRole("button", { name: /account/i }).click();
  await other.getByRole("menuitem", { name: "Log out" }).click();
  await logIn(other, ann.defaultKey.key);
  await expect(other).toHaveURL(/\/dashboard/);
  // Headless pages are always visible.
  await page.evaluate(() => window.dispatchEvent(new Event("visibilitychange")));
  await expect(page).toHaveURL(/\/dashboard/);
  await expect(page.getByRole("navigation").getByRole("link", { name: "People" })).toBeVisible();
  await expect(page.getByRole("navigation").getByRole("link", { name: "Providers" })).toHaveCount(
    0,
  );
});

test("an expiry that is typed only in part is refused, and the stored one stays", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await authenticate(page);
  await page.goto(`/people?user=${ann.user.id}`);
  await page.getByRole("dialog", { name: "ann" }).getByRole("button", { name: "Edit" }).click();
  await field("Expires").focus();
  // Clears the day and leaves month and year.
  await page.keyboard.press("Backspace");
  await dialog.last().getByRole("button", { name: "Save" }).click();
  await expect(dialog.last().getByText("Enter a complete date")).toBeVisible();
  const [kept] = await gateway.action("users/getUsers");
  expect(kept.expiresAt).toMatch(/^2027-03-01/);
  await field("Expires").fill("");
  await dialog.last().getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  const [freed] = await gateway.action("users/getUsers");
  expect(freed.expiresAt ?? null).toBeNull();
});

test("the log's time filter shows days as days, and ignores text that is not a time", async ({
  gateway,
  page,
}) => {
  await authenticate(page);
  expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
  await gateway.logged(1);
  await page.goto("/logs?from=yesterday");
  const rows = page.locator("tbody tr[data-row]");
  await expect(rows).toHaveCount(1);
  await page.goto("/logs?from=2026-02-03&to=2026-02-04");
  await expect(page.getByText("Feb 3, 2026 – Feb 4, 2026")).toBeVisible();
  await expect(rows).toHaveCount(0);
});

test("a session id that two keys use is two sessions", async ({ gateway, page }) => {
  const bob = await gateway.addUser("bob");
  const headers = { "x-session-id": "the-same-name" };
  const model = "claude-sonnet-4-5";
  expect((await gateway.ask(ann.defaultKey.key, model, "From Ann.", {}, headers)).status).toBe(200);
  expect((await gateway.ask(bob.defaultKey.key, model, "From Bob.", {}, headers)).status).toBe(200);
  await gateway.logged(2);
  await authenticate(page);
  await page.goto("/sessions");
  for (const [name, said, other] of [
    ["ann", "From Ann.", "From Bob."],
    ["bob", "From Bob.", "From Ann."],
  ]) {
    await page.locator("tbody tr[data-row]").filter({ hasText: name }).click();
    const panel = page.getByRole("dialog", { name });
    await expect(panel.getByRole("listitem")).toHaveCount(1);
    await panel.getByRole("tab", { name: "Messages" }).click();
    await expect(panel.getByText(said)).toBeVisible();
    await expect(panel.getByText(other)).toHaveCount(0);
    await panel.getByRole("button", { name: "Close" }).click();
  }
});

test("JSON that was edited is replaced only after a question", async ({ page }) => {
  await authenticate(page);
  await page.goto("/playground");
  await page.getByRole("tab", { name: "JSON" }).click();
  const body = page.getByLabel("Body, as JSON");
  await expect(body).toHaveValue(/"model"/);
  await page.getByRole("tab", { name: "Simple" }).click();
  await page.getByLabel("Prompt", { exact: true }).fill("first");
  // It was not edited, so it follows the fields.
  await page.getByRole("tab", { name: "JSON" }).click();
  await expect(body).toHaveValue(/first/);
  await body.fill('{"mine": true}');
  await page.getByRole("tab", { name: "Simple" }).click();
  await page.getByRole("tab", { name: "JSON" }).click();
  const question = page.getByRole("dialog", { name: "Replace the edited JSON?" });
  await question.getByRole("button", { name: "Cancel" }).click();
  await expect(body).toHaveValue('{"mine": true}');
  await page.getByRole("tab", { name: "Simple" }).click();
  await page.getByRole("tab", { name: "JSON" }).click();
  await question.getByRole("button", { name: "Make it from the fields" }).click();
  await expect(body).toHaveValue(/first/);
});

test.describe("in a tall window", () => {
  test.use({ viewport: { width: 1000, height: 3000 } });

  test("the log reads as many pages as fit", async ({ gateway, page }) => {
    for (let times = 0; times < 60; times++)
      expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
    await gateway.logged(60);
    await authenticate(page);
    await page.goto("/logs");
    await expect(page.locator("tbody tr[data-row]")).toHaveCount(60);
  });
});
