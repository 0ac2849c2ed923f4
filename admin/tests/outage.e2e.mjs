/**
 * The database or the gateway stops while pages are open. The pages report that, mark outdated
 * data, and recover.
 */
import { authenticate } from "./browser.mjs";
import { test as base, expect } from "./fixtures.mjs";

const test = base.extend({
  settings: ({ postgres }, use) => use(postgres ? { DATABASE_URL: postgres.database() } : {}),
  expectedFaults: /status of 50\d|ERR_|ApiError: The database has not answered/,
});

test.beforeEach(({ gateway }) => gateway.addUser("ann", { limitDailyUsd: 4 }));

const dot = (page, text) =>
  expect(
    page.getByRole("status", { includeHidden: true }).filter({ hasText: text }).first(),
  ).toBeVisible();

test("PostgreSQL stops and starts again", async ({ postgres, context, page }) => {
  test.skip(!postgres, "PostgreSQL is not installed");
  await authenticate(page);
  await page.goto("/people");
  await expect(page.getByRole("cell", { name: "ann" }).first()).toBeVisible();
  await dot(page, "Live");
  const other = await context.newPage();
  await other.goto("/dashboard");
  await expect(
    other
      .getByText("Nothing needs")
      .or(other.getByRole("heading", { name: "Overview" }))
      .first(),
  ).toBeVisible();

  postgres.stop();
  // An open page reports it without a click.
  const away = "The database has not answered since";
  for (const one of [page, other]) {
    await expect(one.getByRole("alert").filter({ hasText: away }).first()).toBeVisible();
    await expect(one.getByText(/What you see is as of/)).toBeVisible();
    await dot(one, /No database since/);
    await expect(one.getByRole("status").filter({ hasText: "Live" })).toHaveCount(0);
  }
  // Data that was read before stays on the page.
  expect(await page.getByRole("cell", { name: "ann" }).count()).toBeGreaterThan(0);
  // A save reports the same, and keeps the input.
  await page.getByRole("button", { name: "New user" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill("bob");
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await expect(form.getByRole("alert").filter({ hasText: away })).toBeVisible();
  await expect(form.getByLabel("Name", { exact: true })).toHaveValue("bob");
  // A page that is opened now reports it too.
  await other.reload();
  await expect(other.getByText(away).first()).toBeVisible();

  postgres.start();
  for (const one of [page, other]) {
    await dot(one, "Live");
    await expect(one.getByText("What you see is as of")).toHaveCount(0);
  }
  await expect(other.getByRole("heading", { name: "Overview" })).toBeVisible();
  await form.getByRole("button", { name: "Create", exact: true }).click();
  // The new key is shown in front of the list.
  await expect(page.getByRole("cell", { name: "bob", includeHidden: true }).first()).toBeVisible();
  await expect(page.getByText("What you see is as of")).toHaveCount(0);
});

test("the gateway stops and starts again", async ({ gateway, page }) => {
  await authenticate(page);
  await page.goto("/people");
  await expect(page.getByRole("cell", { name: "ann" }).first()).toBeVisible();
  await dot(page, "Live");
  await gateway.halt();
  await expect(
    page.getByRole("alert").filter({ hasText: "The gateway has not answered since" }),
  ).toBeVisible();
  await dot(page, /No answer since/);
  expect(await page.getByRole("cell", { name: "ann" }).count()).toBeGreaterThan(0);
  await gateway.again();
  await dot(page, "Live");
  await expect(page.getByText("The gateway has not answered since")).toHaveCount(0);
  await gateway.addUser("carla");
  await expect(page.getByRole("cell", { name: "carla" }).first()).toBeVisible();
});
