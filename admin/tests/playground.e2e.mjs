/** The playground: requests as a key, streamed, with what they cost and how they went; refused ones, and whose keys one may use. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

let gateway;
let browser;
let bob;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
  const { action, mockUrl } = gateway;
  await action("providers/addProvider", {
    name: "main",
    url: mockUrl,
    key: "mock-key-0123456789",
    allowed_models: ["claude-sonnet-4-5"],
  });
  await action("users/addUser", { name: "ann" });
  bob = await action("users/addUser", { name: "bob" });
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

const record = (page) => page.locator("section").filter({ hasText: "What it used and how it went" });
const answer = (page) => page.locator("[data-answer]");

test("an administrator asks as somebody's key, in two formats, and sees reply, cost and decisions", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.getByRole("link", { name: "Playground" }).click();
  await page.getByText("Nothing sent yet").waitFor();
  await page.getByLabel("As key").selectOption({ label: "ann / default" });
  await page.getByText("charged to the key default of ann").waitFor();
  await page.getByText("this is recorded in the audit log").waitFor();
  // Nothing is sent without anything to say.
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("Write something first").waitFor();
  for (const [format, said] of [
    ["native", "Greetings from the native path"],
    ["chat-compatible", "Greetings from the converted path"],
  ]) {
    await gateway.direct("script", [{ text: said, events: 6, usage: { input: 1000, output: 500 } }]);
    await page.getByLabel("Format").selectOption(format);
    await page.getByLabel("Prompt", { exact: true }).fill("Say hello.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await answer(page).filter({ hasText: said }).waitFor();
    await page.getByText("Complete", { exact: true }).waitFor();
    const told = record(page);
    await told.getByText("main", { exact: true }).first().waitFor();
    await told.getByRole("table").getByText("$0.0105").first().waitFor();
    await told.getByText("Attempt 1: main").waitFor();
    await page.getByRole("tab", { name: "Events" }).click();
    await page
      .getByText(format === "native" ? "message_start" : "chat.completion.chunk")
      .first()
      .waitFor();
    await page.getByRole("tab", { name: "Headers" }).click();
    await page.getByText("x-tollgate-request-id").waitFor();
    await page.getByRole("tab", { name: "Text" }).click();
  }
  const entries = (await gateway.action("audit/getAuditLog", { action: "playground.sendRequest" })).entries;
  assert.equal(entries.length, 2);
  // From there to the request in the log.
  await page.getByRole("link", { name: "Open in Logs" }).click();
  await page.getByRole("dialog", { name: "claude-sonnet-4-5" }).getByText("What happened").waitFor();
  // What was typed is still there.
  await page.goBack();
  assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "Say hello.");
  assert.deepEqual(faults, []);
  await context.close();
});

test("bad JSON is refused in the form with its line, a limit is shown in words, and Stop stops", async () => {
  const { context, page, faults } = await openPage(browser, gateway);
  await logIn(page, gateway, bob.defaultKey.key);
  await page.goto(`${gateway.url}/playground`);
  // One's own keys only, and nothing of the audit log.
  await page.getByLabel("As key").waitFor();
  assert.deepEqual(await page.getByLabel("As key").locator("option").allTextContents(), ["default"]);
  assert.equal(await page.getByText("recorded in the audit log").count(), 0);
  await page.getByLabel("Model").fill("claude-sonnet-4-5");
  await page.getByRole("tab", { name: "JSON" }).click();
  const body = page.getByLabel("Body, as JSON");
  assert.match(await body.inputValue(), /"model": "claude-sonnet-4-5"/);
  await body.fill('{\n  "model": "claude-sonnet-4-5",\n}');
  await page.getByText("Not JSON from line 3, column 1 on").waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  assert.equal((await gateway.action("usage-logs/getUsageLogs", { userId: bob.user.id })).total, 0);
  await gateway.direct("script", [{ text: "one two three four five six", events: 6, hold_after: 4 }]);
  const messages = [{ role: "user", content: "count" }];
  await body.fill(JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 50, stream: true, messages }));
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("Receiving").waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByText("Stopped", { exact: true }).waitFor();
  await record(page).getByText("client left").first().waitFor();
  await gateway.action("users/editUser", { userId: bob.user.id, rpm: 1 });
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("user_rpm", { exact: true }).waitFor();
  await record(page).getByText("refused").first().waitFor();
  await page.getByRole("button", { name: "As curl" }).click();
  await page.getByText(/curl -N http/).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});
