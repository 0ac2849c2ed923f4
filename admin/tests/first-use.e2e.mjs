/**
 * The first use of an empty gateway, guided by the messages of its start and by the pages. Each
 * step follows a visible link or button; none needs an address that a new user would have to know.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

const run = promisify(execFile);
test("a new gateway leads through its first steps", async ({ page }) => {
  await authenticate(page);
  await page.goto("/dashboard");
  await expect(
    page.getByRole("heading", { name: "Five steps to the first request" }),
  ).toBeVisible();
  await page.getByRole("link", { name: /Add a provider/ }).click();
  await expect(page.getByRole("heading", { name: "No providers yet" })).toBeVisible();
});

test.describe("with a token that the gateway made", () => {
  test.use({ settings: { ADMIN_TOKEN: undefined } });

  test("from the first start to the first request, by what is printed and shown", async ({
    gateway,
    page,
    field,
  }) => {
    const form = page.getByRole("dialog").last();
    /** The next step, in a strip above every page until the first request. */
    const next = (title) => page.getByText(title, { exact: true });

    // The terminal shows the address and the credential.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal's colours
    const printed = gateway.log().replace(/\x1b\[[0-9;]*m/g, "");
    const [, address] = printed.match(/tollgate is up .*admin="(http[^"]+)"/) ?? [];
    const [, file] = printed.match(/log in with the token that this file holds.* file=(\S+)/) ?? [];
    expect(address, printed).toBeTruthy();
    expect(file, printed).toBeTruthy();

    await page.goto(address);
    await expect(page.getByText(/The token is in the file admin.token/)).toBeVisible();
    await page.getByLabel("Token or key").fill(readFileSync(file, "utf8").trim());
    await page.getByRole("button", { name: "Log in" }).click();

    // The overview shows the steps. There is a price table, which was not opened yet.
    await expect(
      page.getByRole("heading", { name: "Five steps to the first request" }),
    ).toBeVisible();
    await expect(page.getByLabel("Done")).toHaveCount(0);
    await page.getByRole("link", { name: /Add a provider/ }).click();

    // A provider: the form shows its required fields, and a test shows whether it answers before it
    // is saved.
    await expect(next("Step 1 of 5: Add a provider")).toBeVisible();
    await page.getByRole("button", { name: "Add provider" }).first().click();
    await field("Name").fill("my provider");
    await field("Format").selectOption({
      label: "chat-compatible · OpenAI Chat Completions and most others",
    });
    await expect(field("Address")).toHaveAttribute("placeholder", "https://api.openai.com");
    await field("Address").fill(gateway.mockUrl);
    await field("Credential").fill("an-api-key-of-mine");
    await field("Model for the test").fill("gpt-5");
    await form.getByRole("button", { name: "Test", exact: true }).click();
    await expect(form.getByText(/It answers — gpt-5 · HTTP 200/)).toBeVisible();
    await form.getByRole("button", { name: "Add provider" }).click();
    await expect(page.getByRole("cell", { name: "Never used" })).toBeVisible();

    // The strip leads to the prices: there is a table, and opening it is the step.
    await expect(next("Step 2 of 5: Check the price table")).toBeVisible();
    await page.getByRole("link", { name: "Go to Prices" }).click();
    await expect(page.locator("tbody tr[data-row]").first()).toBeVisible();

    // Then to people: a key is created with the user, and shown once.
    await expect(next("Step 3 of 5: Create a user and a key")).toBeVisible();
    await page.getByRole("link", { name: "Go to People" }).click();
    await page.getByRole("button", { name: "New user" }).first().click();
    await field("Name").fill("ada");
    await form.getByRole("button", { name: "Create" }).click();
    const key = await page.getByTestId("new-key").textContent();
    await page.getByRole("button", { name: "I have kept it" }).click();

    // The settings for a client. The models of the examples are ones that the provider answers to.
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Go to Connect" }).click();
    await page.getByRole("button", { name: "curl" }).click();
    await page.getByLabel("Key").fill(key);
    const line = await page.getByRole("tabpanel").locator("pre").textContent();
    expect(line).toMatch(/"model":"gpt-5"/);
    const { stdout } = await run("sh", [
      "-c",
      line.replace("curl ", "curl -sS --fail-with-body --max-time 20 "),
    ]);
    expect(JSON.parse(stdout).type, stdout).toBe("message");

    // The request is announced, with a link to its details.
    await expect(page.getByText("The first request has arrived")).toBeVisible();
    await page.getByRole("link", { name: "See what happened and what it cost" }).click();
    const request = page.getByRole("dialog", { name: "gpt-5" });
    await expect(request.getByText("Attempt 1: my provider")).toBeVisible();
    await expect(request.getByRole("row", { name: /^Cost \$0\.0/ })).toBeVisible();
    await request.getByRole("button", { name: "Close" }).click();
    const row = page.locator("tbody tr[data-row]");
    await expect(row.filter({ hasText: "ada" }).filter({ hasText: "my provider" })).toBeVisible();

    // The steps are done and hidden.
    await page.getByRole("link", { name: "Overview" }).click();
    await expect(page.getByText("Nothing needs you right now")).toBeVisible();
    await expect(
      page.getByRole("heading", { name: "Five steps to the first request" }),
    ).toHaveCount(0);
    await expect(page.getByText(/^Step \d of 5/)).toHaveCount(0);
    await expect(page.getByRole("listitem").filter({ hasText: "ada" })).toBeVisible();
  });
});
