/** Observation: the log and its export, a session with its messages, and the user's own usage. */
import { readFileSync } from "node:fs";
import { authenticate, logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

let ann;
let cli;
test.use({ settings: { STORE_SESSION_MESSAGES: "true" } });
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider({ allowed_models: ["claude-sonnet-4-5", "claude-haiku-4-5"] });
  ann = await gateway.addUser("ann", { limitDailyUsd: 1, limitMonthlyUsd: 20, rpm: 60 });
  // A spreadsheet would run this key's name as a formula.
  const key = {
    userId: ann.user.id,
    name: '=cmd("x"), cli',
    canLoginWebUi: false,
    limitDailyUsd: 0.5,
  };
  cli = await gateway.action("keys/addKey", key);
});

/** Requests that are answered, one per model. */
async function spend(gateway, key, models) {
  for (const model of models) expect((await gateway.ask(key, model)).status).toBe(200);
}
const [SONNET, HAIKU] = ["claude-sonnet-4-5", "claude-haiku-4-5"];

test("the log shows a request as it ends, and what happened", async ({ gateway, page }) => {
  await spend(gateway, cli.generatedKey, [SONNET, SONNET]);
  // These are in the database, so that the page begins with them.
  await gateway.logged(2);
  await authenticate(page);
  await page.goto("/logs");
  const rows = page.locator("tbody tr[data-row]");
  await expect(rows.nth(1)).toBeVisible();
  const before = await rows.count();
  expect((await gateway.ask(cli.generatedKey, HAIKU, "Something new")).status).toBe(200);
  // The event stream updates the page: nothing is reloaded.
  await expect(rows.filter({ hasText: "claude-haiku-4-5" }).first()).toBeVisible();
  await expect(rows).toHaveCount(before + 1);
  await rows.filter({ hasText: "claude-haiku-4-5" }).first().click();
  await expect(page.getByText("What happened")).toBeVisible();
  await expect(page.getByText("Tokens and cost")).toBeVisible();
});

test("a cold prompt cache is explained on the request and on the overview", async ({
  gateway,
  page,
}) => {
  const written = (tokens) => ({ usage: { input: 9, output: 9, cache_write_5m: tokens } });
  await gateway.direct("script", [written(40_000), written(40_000)]);
  for (const name of ["read", "write"]) {
    const tools = [{ name, input_schema: { type: "object" } }];
    const headers = { "x-session-id": "cold" };
    const asked = await gateway.ask(cli.generatedKey, SONNET, "Go on", { tools }, headers);
    expect(asked.status).toBe(200);
  }
  await gateway.logged(2);
  await authenticate(page);
  await page.goto("/logs?session=cold");
  await page.locator("tbody tr[data-row]").first().click();
  const line = /^Not read from the prompt cache: 40,000 tokens, \$[\d.]+ more. Tools changed.$/;
  await expect(page.getByText(line).first()).toBeVisible();
  await page.goto("/dashboard");
  await expect(page.getByText("Cold prompt caches today")).toBeVisible();
  await expect(page.getByText("Tools changed · 100%")).toBeVisible();
});

test("what is filtered can be taken away as a file, row by row as it is shown", async ({
  gateway,
  page,
}) => {
  await spend(gateway, cli.generatedKey, [SONNET, HAIKU, SONNET]);
  expect((await gateway.ask(ann.defaultKey.key, "no-such-model")).status).toBe(404);
  await gateway.logged(4);
  await authenticate(page);
  await page.goto("/logs?model=claude-sonnet-4-5");
  const rows = page.locator("tbody tr[data-row]");
  await expect(rows.nth(1)).toBeVisible();
  await expect(rows).toHaveCount(2);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const file = await saving;
  expect(file.suggestedFilename()).toMatch(/^tollgate-logs-[\d-T]+\.csv$/);
  const [head, ...lines] = readFileSync(await file.path(), "utf8")
    .trim()
    .split("\r\n");
  expect(head).toMatch(/^createdAt,requestId,userName,keyName,/);
  expect(lines.length).toBe(2);
  // A name that a spreadsheet would treat as a formula is a text in it.
  for (const line of lines)
    expect(line).toMatch(/,ann,"'=cmd\(""x""\), cli",.*,claude-sonnet-4-5,/);
  await expect(page.getByText("2 requests exported")).toBeVisible();
});

test("a paused log stands still, says how many are new, and takes them in", async ({
  gateway,
  page,
}) => {
  await spend(gateway, cli.generatedKey, [SONNET, HAIKU, SONNET, HAIKU]);
  await gateway.logged(4);
  await authenticate(page);
  await page.goto("/logs");
  const rows = page.locator("tbody tr[data-row]");
  await expect(
    page
      .getByRole("status", { name: "Live" })
      .or(page.getByText("Live", { exact: true }))
      .first(),
  ).toBeVisible();
  await expect(rows.nth(3)).toBeVisible();
  const before = await rows.count();
  await page.getByRole("button", { name: "Pause" }).click();
  await gateway.ask(cli.generatedKey);
  await gateway.ask(cli.generatedKey);
  await expect(page.getByRole("button", { name: "2 new" })).toBeVisible();
  // biome-ignore lint/suspicious/noPlaywrightWaitForTimeout: no event marks an unchanged list
  await page.waitForTimeout(2_000);
  expect(await rows.count()).toBe(before);
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(rows.nth(before + 1)).toBeVisible();
});

test("a session shows its requests in order, and what was said", async ({ gateway, page }) => {
  await authenticate(page);
  await page.goto("/sessions");
  const headers = { "x-session-id": "the-one-conversation" };
  await gateway.ask(ann.defaultKey.key, "claude-sonnet-4-5", "What is a tollgate?", {}, headers);
  // The event stream adds it, and its second request in the open panel.
  await page.locator("tbody tr[data-row]").filter({ hasText: "the-one-conversation" }).click();
  const panel = page.getByRole("dialog", { name: "ann" });
  await panel.getByRole("tab", { name: "Messages" }).click();
  await expect(panel.getByText("What is a tollgate?")).toBeVisible();
  await expect(panel.getByText("This is claude-sonnet-4-5, the mock model.")).toBeVisible();
  await panel.getByRole("tab", { name: "Requests" }).click();
  await expect(panel.getByRole("listitem").first()).toBeVisible();
  await expect(panel.getByRole("listitem")).toHaveCount(1);
  await gateway.ask(ann.defaultKey.key, "claude-haiku-4-5", "And who keeps it?", {}, headers);
  await expect(panel.getByRole("listitem").nth(1)).toBeVisible();
  const models = await panel.getByRole("listitem").allTextContents();
  expect(models[0]).toMatch(/sonnet/);
  expect(models[1]).toMatch(/haiku/);
  // Open the request in the log of this session only.
  await panel.getByRole("link", { name: /haiku/ }).click();
  await expect(
    page.getByRole("dialog", { name: "claude-haiku-4-5" }).getByText("What happened"),
  ).toBeVisible();
  const rows = page.locator("tbody tr[data-row]");
  await expect(rows.nth(1)).toBeVisible();
  await expect(rows).toHaveCount(2);
});

test("a user sees only their own limits, use, models and requests", async ({ gateway, page }) => {
  await spend(gateway, cli.generatedKey, [SONNET, HAIKU, SONNET, SONNET, SONNET]);
  await spend(gateway, ann.defaultKey.key, [SONNET, HAIKU]);
  expect((await gateway.ask(ann.defaultKey.key, "no-such-model")).status).toBe(404);
  const other = await gateway.addUser("bob");
  await spend(gateway, other.defaultKey.key, [HAIKU]);
  await gateway.direct("script", [{ usage: { input: 30_000, output: 2_000 } }]);
  // 30,000 × 3 and 2,000 × 15 dollars a million are 0.12.
  expect((await gateway.ask(cli.generatedKey)).status).toBe(200);
  await gateway.logged(10);
  await logIn(page, cli.generatedKey);
  await expect(page).toHaveURL(/\/my-usage/);
  // Limits: their use, and the times of their resets.
  const limits = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Limits", exact: true }) });
  await expect(limits.getByText(/\$0\.12\d* \/ \$0\.50/)).toBeVisible();
  await expect(limits.getByText(/\$0\.12\d* \/ \$1\.00/)).toBeVisible();
  await expect(limits.getByText(/\$0\.12\d* \/ \$20\.00/)).toBeVisible();
  await expect.poll(() => limits.getByText(/^resets /).count()).toBeGreaterThanOrEqual(6);
  await expect(limits.getByText("Requests per minute")).toBeVisible();
  // The key, and the start of its day.
  const me = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "This key" }) });
  await expect(me.getByText('=cmd("x"), cli')).toBeVisible();
  await expect(me.getByText("00:00 (Europe/Berlin)")).toBeVisible();
  // Usage of today and of a longer period.
  const use = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Use", exact: true }) });
  await expect(use.getByRole("row", { name: /claude-haiku-4-5 1 / })).toBeVisible();
  await use.getByRole("button", { name: "7 days" }).click();
  await expect(use.getByRole("row", { name: /claude-sonnet-4-5 5 / })).toBeVisible();
  // Models that the provider names, and only the key's own requests.
  const models = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Models that this key can use" }) });
  await expect(models.getByText("claude-haiku-4-5", { exact: true })).toBeVisible();
  const rows = page.getByRole("table", { name: "Requests" }).locator("tbody tr[data-row]");
  await expect(rows.nth(5)).toBeVisible();
  await expect(rows).toHaveCount(6);
  // The page has nothing to change, and no links to other pages.
  const main = page.getByRole("main");
  await expect(main.getByRole("textbox")).toHaveCount(0);
  await expect(page.getByRole("navigation").getByRole("link")).toHaveText(["My usage", "Connect"]);
});
