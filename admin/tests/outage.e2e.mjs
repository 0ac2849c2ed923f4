/** The database or the gateway goes away under open pages: they say so, mark what they show, and recover by themselves. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";
import { startPostgres } from "./postgres.mjs";

let postgres;
let gateway;
let browser;
before(async () => {
  postgres = startPostgres();
  gateway = await startGateway(postgres ? { DATABASE_URL: postgres.url } : {});
  browser = await startBrowser();
  await gateway.action("users/addUser", { name: "ann", limitDailyUsd: 4 });
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
  postgres?.remove();
});

const dot = (page, text) =>
  page.getByRole("status", { includeHidden: true }).filter({ hasText: text }).first().waitFor();
/** A 5xx on the console is what these are about. */
const unexpected = (faults) => faults.filter((fault) => !/status of 50\d|ERR_/.test(fault));

test("PostgreSQL stops and starts again", async (t) => {
  if (!postgres) return t.skip("PostgreSQL is not installed");
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/people`);
  await page.getByRole("cell", { name: "ann" }).first().waitFor();
  await dot(page, "Live");
  const other = await context.newPage();
  await other.goto(`${gateway.url}/dashboard`);
  await other
    .getByText("Nothing needs")
    .or(other.getByRole("heading", { name: "Overview" }))
    .first()
    .waitFor();

  postgres.stop();
  // An open page says so, without a click.
  const away = "The database has not answered since";
  for (const one of [page, other]) {
    await one.getByRole("alert").filter({ hasText: away }).first().waitFor();
    await one.getByText(/What you see is as of/).waitFor();
    await dot(one, /No database since/);
    assert.equal(await one.getByRole("status").filter({ hasText: "Live" }).count(), 0);
  }
  // What was read stays.
  assert.ok((await page.getByRole("cell", { name: "ann" }).count()) > 0);
  // A save says the same, and keeps what was typed.
  await page.getByRole("button", { name: "New user" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill("bob");
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await form.getByRole("alert").filter({ hasText: away }).waitFor();
  assert.equal(await form.getByLabel("Name", { exact: true }).inputValue(), "bob");
  // A page that is opened now says it too.
  await other.reload();
  await other.getByText(away).first().waitFor();

  postgres.start();
  for (const one of [page, other]) {
    await dot(one, "Live");
    await one.getByText("What you see is as of").waitFor({ state: "detached" });
  }
  await other.getByRole("heading", { name: "Overview" }).waitFor();
  await form.getByRole("button", { name: "Create", exact: true }).click();
  // The new key is shown in front of the list.
  await page.getByRole("cell", { name: "bob", includeHidden: true }).first().waitFor();
  assert.equal(await page.getByText("What you see is as of").count(), 0);
  assert.deepEqual(unexpected(faults), []);
  await context.close();
});

test("the gateway stops and starts again", async () => {
  postgres?.start();
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/people`);
  await page.getByRole("cell", { name: "ann" }).first().waitFor();
  await dot(page, "Live");
  await gateway.halt();
  await page.getByRole("alert").filter({ hasText: "The gateway has not answered since" }).waitFor();
  await dot(page, /No answer since/);
  assert.ok((await page.getByRole("cell", { name: "ann" }).count()) > 0);
  await gateway.again();
  await dot(page, "Live");
  await page.getByText("The gateway has not answered since").waitFor({ state: "detached" });
  await gateway.action("users/addUser", { name: "carla" });
  await page.getByRole("cell", { name: "carla" }).first().waitFor();
  assert.deepEqual(unexpected(faults), []);
  await context.close();
});
