/**
 * Somebody who has never seen it: an empty gateway, and nothing to go by but what it printed when
 * it started and what the pages say. Each step follows a link or a button that is in sight; nothing
 * is reached by an address that one would have to know.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { openPage, startBrowser, startGateway } from "./gateway.mjs";

const run = promisify(execFile);
let gateway;
let browser;
let page;
let faults;
let context;
before(async () => {
  gateway = await startGateway({ ADMIN_TOKEN: undefined });
  browser = await startBrowser();
  ({ context, page, faults } = await openPage(browser, gateway));
});
after(async () => {
  await context?.close();
  await browser?.close();
  await gateway?.stop();
});

const form = () => page.getByRole("dialog").last();
const field = (name) => form().getByLabel(name, { exact: true });
/** The strip that leads on, above every page until the first request. */
const next = (title) => page.getByText(title, { exact: true });

test("from the first start to the first request, by what is printed and shown", async () => {
  // The terminal: where to go, and what to log in with.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal's colours
  const printed = gateway.log().replace(/\x1b\[[0-9;]*m/g, "");
  const [, address] = printed.match(/tollgate is up .*admin="(http[^"]+)"/) ?? [];
  const [, file] = printed.match(/log in with the token that this file holds.* file=(\S+)/) ?? [];
  assert.ok(address && file, printed);

  await page.goto(address);
  await page.getByText(/The token is in the file admin.token/).waitFor();
  await page.getByLabel("Token or key").fill(readFileSync(file, "utf8").trim());
  await page.getByRole("button", { name: "Log in" }).click();

  // The overview shows the steps. A price table is there, and nobody has looked at it.
  await page.getByRole("heading", { name: "Five steps to the first request" }).waitFor();
  assert.equal(await page.getByLabel("Done").count(), 0);
  await page.getByRole("link", { name: /Add a provider/ }).click();

  // A provider: the form says what it needs, and a test says whether it answers before anything is
  // saved.
  await next("Step 1 of 5: Add a provider").waitFor();
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await field("Name").fill("my provider");
  await field("Format").selectOption({ label: "chat-compatible · OpenAI Chat Completions and most others" });
  assert.equal(await field("Address").getAttribute("placeholder"), "https://api.openai.com");
  await field("Address").fill(gateway.mockUrl);
  await field("Credential").fill("an-api-key-of-mine");
  await field("Model for the test").fill("gpt-5");
  await form().getByRole("button", { name: "Test", exact: true }).click();
  await form()
    .getByText(/It answers — gpt-5 · HTTP 200/)
    .waitFor();
  await form().getByRole("button", { name: "Add provider" }).click();
  await page.getByRole("cell", { name: "Never used" }).waitFor();

  // The strip leads on to the prices: a table is there, and a look at it is the step.
  await next("Step 2 of 5: Check the price table").waitFor();
  await page.getByRole("link", { name: "Go to Prices" }).click();
  await page.locator("tbody tr[data-row]").first().waitFor();

  // And on to people; a key comes with the user, and is shown once.
  await next("Step 3 of 5: Create a user and a key").waitFor();
  await page.getByRole("link", { name: "Go to People" }).click();
  await page.getByRole("button", { name: "New user" }).first().click();
  await field("Name").fill("ada");
  await form().getByRole("button", { name: "Create" }).click();
  const key = await page.getByTestId("new-key").textContent();
  await page.getByRole("button", { name: "I have kept it" }).click();

  // The settings for a client. The models of the examples are ones that the provider answers to.
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Go to Connect" }).click();
  await page.getByRole("button", { name: "curl" }).click();
  await page.getByLabel("Key").fill(key);
  const line = await page.getByRole("tabpanel").locator("pre").textContent();
  assert.match(line, /"model":"gpt-5"/);
  const { stdout } = await run("sh", ["-c", line.replace("curl ", "curl -sS --fail-with-body --max-time 20 ")]);
  assert.equal(JSON.parse(stdout).type, "message", stdout);

  // It is announced, and one step away with all that happened.
  await page.getByText("The first request has arrived").waitFor();
  await page.getByRole("link", { name: "See what happened and what it cost" }).click();
  const request = page.getByRole("dialog", { name: "gpt-5" });
  await request.getByText("Attempt 1: my provider").waitFor();
  await request.getByRole("row", { name: /^Cost \$0\.0/ }).waitFor();
  await request.getByRole("button", { name: "Close" }).click();
  const row = page.locator("tbody tr[data-row]");
  await row.filter({ hasText: "ada" }).filter({ hasText: "my provider" }).waitFor();

  // The steps are done and gone.
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText("Nothing needs you right now").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Five steps to the first request" }).count(), 0);
  assert.equal(await page.getByText(/^Step \d of 5/).count(), 0);
  await page.getByRole("listitem").filter({ hasText: "ada" }).waitFor();
  assert.deepEqual(faults, []);
});
