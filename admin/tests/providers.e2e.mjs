/** Providers in the UI: added, tested, edited, and with an open circuit. */
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

test.beforeEach(({ page }) => authenticate(page));

test("a provider is added, with faults at their fields in the gateway's words", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await page.goto("/providers");
  await page.getByRole("button", { name: "Add provider" }).first().click();
  await field("Name").fill("mock");
  await field("Address").fill("not an address");
  await field("Credential").fill("a-credential-0123456789");
  await dialog.getByRole("button", { name: "Add provider" }).click();
  await expect(dialog.getByRole("alert").first()).toBeVisible();
  // All input is kept.
  await expect(field("Name")).toHaveValue("mock");
  await field("Address").fill(gateway.mockUrl);
  await dialog.getByRole("button", { name: "Add provider" }).click();
  await expect(page.getByRole("cell", { name: "mock", exact: true })).toBeVisible();
  await expect(page.getByRole("cell", { name: "Never used" })).toBeVisible();
});

test("a provider's test says what it answered, or why it did not", async ({ gateway, page }) => {
  await gateway.addProvider({ name: "mock" });
  await page.goto("/providers");
  await page.getByRole("cell", { name: "mock", exact: true }).click();
  const panel = page.getByRole("dialog", { name: "mock" });
  await panel.getByLabel("Model for the test").fill("claude-haiku-4-5");
  await panel.getByRole("button", { name: "Test", exact: true }).click();
  await expect(panel.getByText(/It answers — claude-haiku-4-5 · HTTP 200/)).toBeVisible();
  await expect(panel.getByText("This is claude-haiku-4-5, the mock model.")).toBeVisible();
  const body = {
    type: "error",
    error: { type: "authentication_error", message: "invalid x-api-key" },
  };
  await gateway.direct("script", [{ status: 401, body }]);
  await panel.getByRole("button", { name: "Test", exact: true }).click();
  await expect(
    panel.getByRole("alert").filter({ hasText: "The test failed — claude-haiku-4-5 · HTTP 401" }),
  ).toBeVisible();
  await expect(panel.getByText("invalid x-api-key")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(panel).toHaveCount(0);
});

test("further keys are added, one that is refused is shown and enabled again", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await gateway.addProvider({ name: "many" });
  await page.goto("/providers");
  await page.getByRole("cell", { name: "many", exact: true }).click();
  const panel = page.getByRole("dialog", { name: "many" });
  await panel.getByRole("button", { name: "Edit" }).click();
  await dialog.getByRole("button", { name: "Add a key" }).click();
  await field("Name of the key").fill("key");
  await field("Key").fill("a-second-key-0123456789");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByRole("alert").first()).toBeVisible();
  await field("Name of the key").fill("second");
  await field("Quota guard").fill("95");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Saved")).toBeVisible();
  const reset = Math.floor(Date.now() / 1000) + 7_200;
  await gateway.direct("default?key=a-second-key-0123456789", { status: 401 });
  await gateway.direct("default", {
    headers: {
      "anthropic-ratelimit-unified-5h-utilization": "0.83",
      "anthropic-ratelimit-unified-5h-reset": String(reset),
    },
  });
  const { defaultKey } = await gateway.addUser("ada");
  for (const session of ["a", "b", "c"]) {
    const headers = { "x-session-id": session };
    await gateway.ask(defaultKey.key, undefined, undefined, {}, headers);
  }
  await page.reload();
  const second = page.getByTestId("key-second");
  await expect(second.getByText("Refused by the provider")).toBeVisible();
  await expect(page.getByTestId("key-key").getByText("83%")).toBeVisible();
  await gateway.direct("default?key=a-second-key-0123456789", {});
  await second.getByRole("button", { name: "Enable" }).click();
  await expect(second.getByText("In use")).toBeVisible();
});

test("another address asks for the credential again, and says why", async ({
  gateway,
  page,
  dialog,
}) => {
  await gateway.addProvider({ name: "mock" });
  await page.goto("/providers");
  await page.getByRole("cell", { name: "mock", exact: true }).click();
  await page
    .getByRole("dialog", { name: "mock" })
    .getByRole("button", { name: "Edit", exact: true })
    .click();
  const edit = page.getByRole("dialog", { name: "Edit mock" });
  const why = edit.getByTestId("key-wanted");
  await expect(edit.getByText("Leave empty to keep it.")).toBeVisible();
  await edit.getByLabel("Address", { exact: true }).fill(`${gateway.mockUrl}/v1`);
  await expect(why, "another path is the same receiver").toHaveCount(0);
  await edit.getByLabel("Address", { exact: true }).fill("http://127.0.0.1:9");
  await expect(
    why.filter({ hasText: `the stored one is only sent to ${new URL(gateway.mockUrl).host}` }),
  ).toBeVisible();
  await edit.getByRole("button", { name: "Test", exact: true }).click();
  await expect(edit.getByText("enter it again: the stored key is only sent to")).toBeVisible();
  await edit.getByRole("button", { name: "Save", exact: true }).click();
  const key = edit.getByLabel("Credential", { exact: true });
  await expect(edit.getByRole("alert").filter({ hasText: "enter it again" }).first()).toBeVisible();
  await expect(key).toHaveAttribute("aria-describedby", /error/);
  // A change of the proxy needs the credential too; with it the provider is saved.
  await edit.getByLabel("Address", { exact: true }).fill(gateway.mockUrl);
  await edit.getByLabel("Proxy", { exact: true }).fill("http://127.0.0.1:9");
  await expect(why.filter({ hasText: "the proxy was changed" })).toBeVisible();
  await edit.getByLabel("Proxy", { exact: true }).fill("");
  await edit.getByLabel("Address", { exact: true }).fill(`${gateway.mockUrl}/v1`);
  await key.fill("another-credential-9876543210");
  await edit.getByRole("button", { name: "Save", exact: true }).click();
  await expect(edit).toHaveCount(0);
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
});

test("unsaved changes are not thrown away without asking", async ({
  gateway,
  page,
  dialog,
  field,
}) => {
  await gateway.addProvider();
  await page.goto("/providers");
  await page.getByRole("button", { name: "Add provider" }).click();
  await field("Name").fill("half");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("button", { name: "Discard" })).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).last().click();
  await expect(field("Name")).toHaveValue("half");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
  await expect(dialog).toHaveCount(0);
});

test("a circuit that trips shows by itself, and a reset closes it", async ({
  gateway,
  page,
  dialog,
}) => {
  await gateway.addProvider();
  await gateway.addProvider({
    name: "fragile",
    key: "fragile-key-0123456789",
    group_tag: "fragile",
    circuit_breaker_failure_threshold: 1,
    max_retry_attempts: 1,
  });
  const bob = await gateway.addUser("bob", { providerGroup: "fragile" });
  await page.goto("/providers");
  await expect(page.getByRole("row", { name: /fragile/ }).getByText("Never used")).toBeVisible();
  await gateway.direct("default?key=fragile-key-0123456789", { status: 500 });
  expect((await gateway.ask(bob.defaultKey.key)).status).toBeGreaterThanOrEqual(500);
  // The event stream updates the page: nothing is reloaded.
  await expect(page.getByRole("row", { name: /fragile/ }).getByText("Circuit open")).toBeVisible();
  await page.getByRole("tab", { name: "How selection works" }).click();
  await page.getByLabel("Groups of the key").fill("fragile");
  await expect(page.getByText("No provider is available")).toBeVisible();
  await page.getByRole("tab", { name: "List" }).click();
  await page.getByRole("link", { name: "Overview" }).click();
  await expect(page.getByText("fragile gets no requests")).toBeVisible();
  await page.getByRole("link", { name: "Look" }).click();
  await page.getByRole("button", { name: "Reset circuit" }).click();
  await expect(dialog.getByText("Never used")).toBeVisible();
  await gateway.direct("default?key=fragile-key-0123456789", {});
  expect((await gateway.ask(bob.defaultKey.key)).status).toBe(200);
});

test("an outage shows in a provider's history, and probes are set in its form", async ({
  gateway,
  page,
  field,
  dialog,
}) => {
  const { id } = await gateway.addProvider({ name: "mock" });
  // A node stores a state every five minutes: these stand for a day of them.
  const startsAt = (ago) => new Date(Date.now() - ago).toISOString();
  const looks = [
    { startsAt: startsAt(3_600_000), up: 1, down: 0 },
    { startsAt: startsAt(0), up: 0, down: 1 },
  ];
  const days = [{ startsAt: startsAt(0), up: 999, down: 1 }];
  await page.route("**/getProvidersHistory", (route) =>
    route.fulfill({ json: { ok: true, data: [{ providerId: id, looks, days }] } }),
  );
  await page.goto(`/providers?id=${id}`);
  const day = dialog.getByRole("img", { name: "24 hours: 50%" });
  await expect(day.locator("[data-state=good]")).toHaveCount(1);
  await expect(day.locator("[data-state=bad]")).toHaveCount(1);
  await expect(day.locator("[data-state=unknown]")).toHaveCount(46);
  const ninety = dialog.getByRole("img", { name: "90 days: 99.9%" });
  await expect(ninety.locator("[data-state=warn]")).toHaveCount(1);
  await dialog.getByRole("button", { name: "Edit" }).click();
  await field("Probe it every").fill("60");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("is required for probes")).toBeVisible();
  await field("Model of the probes").fill("claude-haiku-4-5");
  await page.getByRole("button", { name: "Save" }).click();
  const probes = async () =>
    (await (await gateway.direct("requests", undefined, "GET")).json()).length;
  await expect.poll(probes).toBeGreaterThan(0);
});
