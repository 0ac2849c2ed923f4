/**
 * The playground: streamed requests with a selected key, their cost and decisions, and refused
 * requests.
 */
import { authenticate, logIn } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

let bob;
test.beforeEach(async ({ gateway }) => {
  await gateway.addProvider({ allowed_models: ["claude-sonnet-4-5"] });
  await gateway.addUser("ann");
  bob = await gateway.addUser("bob");
});

const record = (page) =>
  page.locator("section").filter({ hasText: "What it used and how it went" });
const answer = (page) => page.locator("[data-answer]");

test("an administrator sends requests as a user's key, and sees reply, cost and decisions", async ({
  gateway,
  page,
}) => {
  await logIn(page);
  await page.getByRole("link", { name: "Playground" }).click();
  await expect(page.getByText("Nothing sent yet")).toBeVisible();
  await page.getByLabel("As key").selectOption({ label: "ann / default" });
  await expect(page.getByText("charged to the key default of ann")).toBeVisible();
  await expect(page.getByText("this is recorded in the audit log")).toBeVisible();
  // An empty prompt is not sent.
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByText("Write something first")).toBeVisible();
  for (const [format, said] of [
    ["native", "Greetings from the native path"],
    ["chat-compatible", "Greetings from the converted path"],
  ]) {
    await gateway.direct("script", [
      { text: said, events: 6, usage: { input: 1000, output: 500 } },
    ]);
    await page.getByLabel("Format").selectOption(format);
    await page.getByLabel("Prompt", { exact: true }).fill("Say hello.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await expect(answer(page).filter({ hasText: said })).toBeVisible();
    await expect(page.getByText("Complete", { exact: true })).toBeVisible();
    const told = record(page);
    await expect(told.getByText("main", { exact: true }).first()).toBeVisible();
    await expect(told.getByRole("table").getByText("$0.0105").first()).toBeVisible();
    await expect(told.getByText("Attempt 1: main")).toBeVisible();
    await page.getByRole("tab", { name: "Events" }).click();
    await expect(
      page.getByText(format === "native" ? "message_start" : "chat.completion.chunk").first(),
    ).toBeVisible();
    await page.getByRole("tab", { name: "Headers" }).click();
    await expect(page.getByText("x-tollgate-request-id")).toBeVisible();
    await page.getByRole("tab", { name: "Text" }).click();
  }
  const entries = (await gateway.action("audit/getAuditLog", { action: "playground.sendRequest" }))
    .entries;
  expect(entries.length).toBe(2);
  // Open the request in the log.
  await page.getByRole("link", { name: "Open in Logs" }).click();
  await expect(
    page.getByRole("dialog", { name: "claude-sonnet-4-5" }).getByText("What happened"),
  ).toBeVisible();
  // The input is still there.
  await page.goBack();
  await expect(page.getByLabel("Prompt", { exact: true })).toHaveValue("Say hello.");
});

test("invalid JSON is refused with its line, a limit is explained, and Stop stops", async ({
  gateway,
  page,
}) => {
  await authenticate(page, bob.defaultKey.key);
  await page.goto("/playground");
  // A user sees their own keys only, and no note on the audit log.
  await expect(page.getByLabel("As key")).toBeVisible();
  await expect(page.getByLabel("As key").locator("option")).toHaveText(["default"]);
  await expect(page.getByText("recorded in the audit log")).toHaveCount(0);
  await page.getByLabel("Model").fill("claude-sonnet-4-5");
  await page.getByRole("tab", { name: "JSON" }).click();
  const body = page.getByLabel("Body, as JSON");
  await expect(body).toHaveValue(/"model": "claude-sonnet-4-5"/);
  await body.fill('{\n  "model": "claude-sonnet-4-5",\n}');
  await expect(page.getByText("Not JSON from line 3, column 1 on")).toBeVisible();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  expect((await gateway.action("usage-logs/getUsageLogs", { userId: bob.user.id })).total).toBe(0);
  await gateway.direct("script", [
    { text: "one two three four five six", events: 6, hold_after: 4 },
  ]);
  const messages = [{ role: "user", content: "count" }];
  await body.fill(
    JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 50, stream: true, messages }),
  );
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByText("Receiving")).toBeVisible();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await expect(page.getByText("Stopped", { exact: true })).toBeVisible();
  await expect(record(page).getByText("client left").first()).toBeVisible();
  await gateway.action("users/editUser", { userId: bob.user.id, rpm: 1 });
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByText("user_rpm", { exact: true })).toBeVisible();
  await expect(record(page).getByText("refused").first()).toBeVisible();
  await page.getByRole("button", { name: "As curl" }).click();
  await expect(page.getByText(/curl -N http/)).toBeVisible();
});

for (const [path, begun, done, model] of [
  ["/v1/messages/batches", "in_progress", "ended", "claude-sonnet-4-5"],
  ["/v1/batches", "validating", "completed", "gpt-5"],
])
  test(`a batch of ${path} is made, watched until it ends, and its results are shown`, async ({
    gateway,
    page,
  }) => {
    await gateway.addProvider({ name: "other", provider_type: "responses" });
    await gateway.direct("default", { text: "An answer of the batch", background_calls: 3 });
    await logIn(page);
    await page.goto("/playground");
    await page.getByLabel("Endpoint").selectOption({ label: path });
    await page.getByLabel("Model").fill(model);
    await page.getByLabel("Text", { exact: true }).fill("one\ntwo");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const batch = page.locator("section").filter({ hasText: "The provider answers within a day" });
    await expect(batch.getByText(begun)).toBeVisible();
    const ended = page.locator("section").filter({ hasText: "request-2" });
    await expect(ended.getByText(done, { exact: true })).toBeVisible({ timeout: 20_000 });
    await expect(ended.getByText("An answer of the batch")).toHaveCount(2);
    await expect(page.getByRole("button", { name: "Cancel the batch" })).toHaveCount(0);
  });

test("every kind of endpoint can be called: its text, its image and its sound appear", async ({
  gateway,
  page,
}) => {
  await gateway.addProvider({
    name: "open",
    provider_type: "chat-compatible",
    allowed_models: [],
  });
  await logIn(page);
  await page.goto("/playground");
  const call = async (path, model) => {
    await page.getByLabel("Endpoint").selectOption({ label: path });
    await page.getByLabel("Model").fill(model);
  };
  const send = () => page.getByRole("button", { name: "Send", exact: true }).click();
  await call("/v1/embeddings", "text-embedding-3-small");
  await expect(page.getByLabel("Format")).toHaveCount(0);
  await page.getByLabel("Text", { exact: true }).fill("Say hello.");
  await send();
  await page.getByRole("tab", { name: "Events" }).click();
  await expect(page.getByText('"embedding"').first()).toBeVisible();
  await expect(page.getByText("What it used and how it went")).toBeVisible();

  await call("/v1/audio/transcriptions", "whisper-1");
  await send();
  await expect(page.getByText("Choose a file first")).toBeVisible();
  const buffer = Buffer.from("RIFF");
  await page
    .getByLabel("File")
    .setInputFiles({ name: "large.wav", mimeType: "audio/wav", buffer: Buffer.alloc(2 << 20) });
  await expect(page.getByText("The file has more than 1 MiB")).toBeVisible();
  await page.getByLabel("File").setInputFiles({ name: "hello.wav", mimeType: "audio/wav", buffer });
  await send();
  await expect(answer(page).filter({ hasText: "mock recording" })).toBeVisible();

  await call("/v1/images/generations", "gpt-image-1");
  await send();
  await expect(page.getByRole("img", { name: "Image 1" })).toBeVisible();

  await call("/v1/audio/speech", "tts-1");
  await send();
  await expect(page.getByLabel("The reply's sound")).toBeVisible();
});

test("which providers a request would go to, and today's answer to a past one", async ({
  gateway,
  page,
}) => {
  await logIn(page);
  await page.getByRole("link", { name: "Playground" }).click();
  await page.getByLabel("As key").selectOption({ label: "ann / default" });
  await page.getByLabel("Prompt", { exact: true }).fill("Say hello.");
  await page.getByRole("button", { name: "Which providers?" }).click();
  const found = page.locator("section").filter({ hasText: "Providers, in order" });
  await expect(found.getByText("the only one that can serve this request")).toBeVisible();
  expect((await gateway.action("usage-logs/getUsageLogs", {})).total).toBe(0);

  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByText("Complete", { exact: true })).toBeVisible();
  await gateway.action("providers/editProvider", { providerId: 1, is_enabled: false });
  await page.getByRole("link", { name: "Open in Logs" }).click();
  await page.getByRole("button", { name: "By today's configuration" }).click();
  await expect(page.getByText("It would be refused with 404")).toBeVisible();
  await expect(page.getByText("disabled by an administrator")).toBeVisible();
});
