/**
 * The common parts of every page: the gateway's name and currency, the command palette, themes,
 * languages.
 */
import { authenticate, logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

let ann;
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider({ name: "upstream" });
  ann = await gateway.addUser("ann", { limitDailyUsd: 5 });
  expect((await gateway.ask(ann.defaultKey.key)).status).toBe(200);
});

test("the gateway's name and currency are shown, and change as they are saved", async ({
  gateway,
  page,
}) => {
  await gateway.action("system-config/saveSystemSettings", { siteTitle: "House gateway" });
  await page.goto("/login");
  await expect(page.getByRole("heading", { name: "House gateway" })).toBeVisible();
  await authenticate(page);
  await page.goto(`/people?user=${ann.user.id}`);
  await expect(page.getByText("$5.00").first()).toBeVisible();
  await expect(page).toHaveTitle("People · House gateway");
  await gateway.action("system-config/saveSystemSettings", {
    siteTitle: "Other house",
    currencyDisplay: "€",
  });
  // The event stream updates it.
  await expect(page.getByText("€5.00").first()).toBeVisible();
  await expect(page.getByText("Other house").first()).toBeVisible();
  await expect(page).toHaveTitle("People · Other house");
});

test("the palette leads to providers, sessions, models and prices", async ({ page }) => {
  await logIn(page);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  const palette = page.getByRole("dialog", { name: "Go to" });
  const go = async (typed, option, path) => {
    await page.keyboard.press("Control+k");
    await palette.getByRole("combobox").fill(typed);
    await palette.getByRole("option", { name: option }).first().click();
    await expect(page).toHaveURL((url) => `${url.pathname}${url.search}`.startsWith(path));
  };
  await go("upstr", /upstream/, "/providers?id=");
  await go("sonnet", /claude-sonnet-4-5.*Model/, "/logs?model=claude-sonnet-4-5");
  await go("claude price", /Price/, "/prices?model=claude-");
  await go("ann session", /Session/, "/sessions?session=");
});

test("a chart takes the colours of a theme as it is chosen, by a person or by the system", async ({
  page,
}) => {
  await logIn(page);
  const [light, dark] = ["rgb(79, 70, 229)", "rgb(143, 139, 255)"];
  const marker = page.locator(".u-legend .u-marker").nth(1);
  const colour = (wanted) =>
    expect(marker).toHaveCSS("border-top-color", wanted, { timeout: 5_000 });
  const drawn = () => page.locator(".uplot canvas").evaluate((canvas) => canvas.toDataURL());
  await expect(marker).toBeVisible();
  await colour(light);
  const before = await drawn();
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "Dark" }).click();
  await colour(dark);
  const after = await drawn();
  expect(after).not.toBe(before);
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "Theme of the system" }).click();
  await colour(light);
  await page.emulateMedia({ colorScheme: "dark" });
  await colour(dark);
  expect(await drawn()).toBe(after);
});

test("the menu of a phone keeps the focus, and returns it", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await logIn(page);
  const menu = page.getByRole("button", { name: "Menu", exact: true });
  await menu.click();
  const drawer = page.getByRole("dialog", { name: "Menu" });
  await expect(drawer.getByRole("button", { name: "Close" })).toBeFocused();
  await menu.evaluate((button) => button.focus());
  await expect(menu).not.toBeFocused();
  await page.keyboard.press("Escape");
  await expect(drawer).toHaveCount(0);
  await expect(menu).toBeFocused();
});

test("the palette opens a user, and the language can be changed", async ({ gateway, page }) => {
  await gateway.addUser("bob");
  await logIn(page);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill("bob");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/people\?user=/);
  await expect(page.getByRole("dialog", { name: "bob" })).toBeVisible();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /account/i }).click();
  await page.getByRole("menuitem", { name: "中文" }).click();
  await expect(page.getByRole("heading", { name: "用户与密钥" })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "zh");
});

test.describe("in Chinese", () => {
  test.use({ locale: "zh-CN" });

  test("refusals are in Chinese if the page is", async ({ page }) => {
    await page.goto("/login");
    await page.locator("input[name=key]").fill("sk-00000000000000000000000000000000");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("alert").filter({ hasText: "这不是已知的密钥" })).toBeVisible();
    await logIn(page);
    await page.goto("/settings");
    await page.locator("input[name=cleanupRetentionDays]").fill("366");
    await page.locator("form button[type=submit]").click();
    await expect(page.getByRole("alert").filter({ hasText: "不能大于 365" })).toBeVisible();
  });
});
