/** Login and logout: who is let in, and the page that follows. */

import { logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";
import { TOKEN } from "./gateway.mjs";

test("the administrator's token leads to the dashboard, a reload stays, logout ends it", async ({
  page,
}) => {
  await page.goto("/people");
  await expect(page).toHaveURL(/\/login\?from=/);
  await page.getByLabel(/token or key/i).fill(TOKEN);
  await page.keyboard.press("Enter");
  // Back to the page that was requested.
  await expect(page).toHaveURL("/people");
  await page.reload();
  await expect(page.getByRole("heading", { name: "People" })).toBeVisible();
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await expect(page).toHaveURL(/\/login/);
  await page.goto("/dashboard");
  await expect(page).toHaveURL(/\/login/);
});

test("a wrong key is refused in the gateway's words and stays in the field", async ({ page }) => {
  await page.goto("/login");
  await page.getByLabel(/token or key/i).fill("sk-nothing");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert").filter({ hasText: "neither a known key" })).toBeVisible();
  await expect(page.getByLabel(/token or key/i)).toHaveValue("sk-nothing");
});

test("the key of a user who administers leads to every page", async ({ gateway, page }) => {
  await gateway.addUser("bob");
  const carla = await gateway.addUser("carla", { role: "admin" });
  await logIn(page, carla.defaultKey.key);
  await expect(page).toHaveURL(/\/dashboard/);
  const pages = page.getByRole("navigation");
  for (const name of ["Providers", "Prices", "Rules", "Settings", "Audit log", "My usage"]) {
    await expect(pages.getByRole("link", { name })).toBeVisible();
  }
  await pages.getByRole("link", { name: "People" }).click();
  await expect(page.getByRole("cell", { name: "bob", exact: true })).toBeVisible();
  // The audit log has the key's name.
  await page.getByRole("button", { name: /account/i }).click();
  await expect(page.getByText("Administrator · key default")).toBeVisible();
});

test("a user's key leads to the dashboard without the administrator's pages", async ({
  gateway,
  page,
}) => {
  const ann = await gateway.addUser("ann");
  await logIn(page, ann.defaultKey.key);
  await expect(page).toHaveURL(/\/dashboard/);
  const pages = page.getByRole("navigation");
  await expect(pages.getByRole("link", { name: "People" })).toBeVisible();
  await expect(pages.getByRole("link", { name: "Providers" })).toHaveCount(0);
});

test("a key that may not use the web UI leads to its own usage, and nowhere else", async ({
  gateway,
  page,
}) => {
  const ann = await gateway.addUser("ann");
  const cli = await gateway.action("keys/addKey", {
    userId: ann.user.id,
    name: "cli",
    canLoginWebUi: false,
  });
  await logIn(page, cli.generatedKey);
  await expect(page).toHaveURL(/\/my-usage/);
  await expect(page.getByRole("heading", { name: "My usage" })).toBeVisible();
  await page.goto("/providers");
  await expect(page).toHaveURL(/\/my-usage/);
  await expect(page.getByRole("navigation").getByRole("link", { name: "People" })).toHaveCount(0);
});

test.describe("with Secure cookies", () => {
  test.use({ settings: { ENABLE_SECURE_COOKIES: "true" } });

  test("a Secure cookie that plain HTTP drops is explained", async ({ context, page }) => {
    // Browsers keep Secure cookies of loopback hosts and drop those of others. Here the test drops
    // it.
    await page.route("**/api/auth/login", async (route) => {
      const reply = await route.fetch();
      const { "set-cookie": cookie, ...headers } = reply.headers();
      expect(cookie).toMatch(/; Secure/);
      await context.clearCookies();
      await route.fulfill({ response: reply, headers });
    });
    await page.goto("/login");
    await page.getByLabel(/token or key/i).fill(TOKEN);
    await page.getByRole("button", { name: "Log in" }).click();
    await expect(page.getByText("ENABLE_SECURE_COOKIES=false")).toBeVisible();
  });
});
