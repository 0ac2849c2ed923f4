/** What the event stream updates: limits, the user's own requests. */
import { authenticate, logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

let ann;
let cli;
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider();
  ann = await gateway.addUser("ann", { limitDailyUsd: 4 });
  cli = await gateway.action("keys/addKey", {
    userId: ann.user.id,
    name: "cli",
    canLoginWebUi: false,
    limitDailyUsd: 2,
  });
});

/** One reply with this number of output tokens. */
const spend = async (gateway, key, output) => {
  await gateway.direct("script", [{ usage: { input: 0, output } }]);
  expect((await gateway.ask(key)).status).toBe(200);
};

test("a read-only key sees its limits and requests move", async ({ gateway, page }) => {
  await logIn(page, cli.generatedKey);
  await expect(page.getByText("Of this key")).toBeVisible();
  await expect(page.getByRole("status").filter({ hasText: "Live" }).first()).toBeVisible();
  await spend(gateway, cli.generatedKey, 100_000);
  // 1.50 of 2 and of 4, and the request's row.
  await expect(page.getByText("75%").first()).toBeVisible();
  await expect(page.getByText("38%").first()).toBeVisible();
  await expect(page.locator("tbody tr[data-row]").first()).toBeVisible();
  await expect(page.getByText("$1.50").first()).toBeVisible();
  // Another key of the same user: the user's limit changes, the list does not.
  await spend(gateway, ann.defaultKey.key, 100_000);
  await expect(page.getByText("75%").nth(1)).toBeVisible();
  await expect(page.locator("tbody tr[data-row]")).toHaveCount(1);
});

test("the limits of whoever is looked at move with their requests", async ({ gateway, page }) => {
  for (const { key } of [{ key: cli.generatedKey }, ann.defaultKey])
    await spend(gateway, key, 100_000);
  const { user, defaultKey } = await gateway.addUser("bob", { limitDailyUsd: 10 });
  await authenticate(page);
  await page.goto(`/people?user=${user.id}`);
  await expect(page.getByText("0%", { exact: true }).first()).toBeVisible();
  await spend(gateway, defaultKey.key, 100_000);
  await expect(page.getByText("15%").first()).toBeVisible();
  // With two earlier replies the provider has cost three times as much as this user.
  await page.goto("/providers?id=1");
  await expect(page.getByText("$4.50").first()).toBeVisible();
  await spend(gateway, defaultKey.key, 100_000);
  await expect(page.getByText("$6.00").first()).toBeVisible();
});

test("what running requests are expected to cost is shown as reserved until they end", async ({
  gateway,
  page,
}) => {
  const { user, defaultKey } = await gateway.addUser("eve", { limitDailyUsd: 10 });
  await authenticate(page);
  await page.goto(`/people?user=${user.id}`);
  await expect(page.getByText("0%", { exact: true }).first()).toBeVisible();
  // The provider sends nothing until the client disconnects.
  await gateway.direct("script", [{ delay_ms: 600_000 }]);
  const client = new AbortController();
  const running = gateway
    .ask(defaultKey.key, undefined, undefined, {}, {}, client.signal)
    .catch(() => {});
  await expect(page.getByText(/reserved/).first()).toBeVisible();
  client.abort();
  await running;
  await expect(page.getByText(/reserved/)).toHaveCount(0);
});
