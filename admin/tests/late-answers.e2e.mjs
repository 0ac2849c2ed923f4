/** Replies that arrive after a newer event: the page keeps the state of the event. */
import { authenticate } from "./browser.mjs";
import { expect, test } from "./fixtures.mjs";

/** A promise with its `resolve`. */
function signal() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

test("a circuit that trips while the page reads its state shows all the same", async ({
  gateway,
  page,
}) => {
  const { id } = await gateway.addProvider({
    name: "fragile",
    key: "fragile-key-0123456789",
    circuit_breaker_failure_threshold: 1,
    max_retry_attempts: 1,
  });
  const bob = await gateway.addUser("bob");
  await authenticate(page);
  await page.goto(`/providers?id=${id}`);
  const row = page.getByRole("row", { name: /fragile/ });
  await expect(row.getByText("Never used")).toBeVisible();

  // The gateway replies, and the test delays these replies until the circuit is open.
  const tripped = signal();
  const asked = signal();
  const again = signal();
  const late = [];
  let holding = true;
  await page.route("**/getProvidersHealthStatus", async (route) => {
    if (!holding) {
      again.resolve();
      return route.continue();
    }
    const response = await route.fetch();
    asked.resolve();
    late.push(tripped.promise.then(() => route.fulfill({ response }).catch(() => undefined)));
  });
  await page.getByRole("dialog").getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Disable" }).click();
  await page
    .getByRole("dialog", { name: "Disable fragile?" })
    .getByRole("button", { name: "Disable" })
    .click();
  await asked.promise;
  await gateway.action("providers/editProvider", { providerId: id, is_enabled: true });
  await gateway.direct("default?key=fragile-key-0123456789", { status: 500 });
  holding = false;
  expect((await gateway.ask(bob.defaultKey.key)).status).toBeGreaterThanOrEqual(500);
  // The page reads the state again; if it did not, it would get the late replies.
  await Promise.race([again.promise, new Promise((done) => setTimeout(done, 10_000))]);
  tripped.resolve();
  await Promise.all(late);
  await expect(row.getByText("Circuit open")).toBeVisible();
  await expect(page.getByRole("dialog").getByText("Circuit open").first()).toBeVisible();
});

test("the strip of the first steps does not move a page's buttons when it comes late", async ({
  gateway,
  page,
}) => {
  await gateway.addProvider({ name: "only", key: "only-key-0123456789" });
  await authenticate(page);
  const answered = signal();
  await page.route("**/getUsageLogs", async (route) => {
    await answered.promise;
    await route.continue();
  });
  const listed = page.waitForResponse("**/getProviders");
  await page.goto("/providers");
  await listed;
  const add = page.getByRole("button", { name: "Add provider", includeHidden: true });
  await expect(add).toHaveCount(1);
  await expect(add).toBeHidden();
  answered.resolve();
  await expect(page.getByText(/Step 2 of 5/)).toBeVisible();
  await expect(add).toBeVisible();
});

test("keys that are selected after a change of many keys stay selected", async ({
  gateway,
  page,
  dialog,
}) => {
  await gateway.addUser("ann");
  await authenticate(page);
  await page.goto("/people?view=keys");
  await page.getByLabel("Select all rows").check();
  await page.getByRole("button", { name: "Edit 1 key" }).click();
  await dialog.getByRole("textbox", { name: "Weekly" }).fill("3");
  // The list is read again after the change. The test delays that reply.
  const asked = signal();
  const answered = signal();
  await page.route("**/getUsers", async (route) => {
    asked.resolve();
    await answered.promise;
    await route.continue();
  });
  await dialog.getByRole("button", { name: "Change 1 key" }).click();
  await asked.promise;
  const message = page.getByText("1 key changed");
  await expect(dialog).toBeVisible();
  await expect(message).toHaveCount(0);
  answered.resolve();
  await expect(message).toBeVisible();
  await page.getByLabel("Select all rows").check();
  await page.getByRole("button", { name: "Edit 1 key" }).click();
  await expect(dialog).toBeVisible();
});

test.describe("without a reply", () => {
  test.use({ expectedFaults: /net::ERR_FAILED/ });

  test("a page is shown though the first steps cannot be read", async ({ gateway, page }) => {
    await gateway.addProvider({ name: "only", key: "only-key-0123456789" });
    await authenticate(page);
    await page.route("**/getUsageLogs", (route) => route.abort());
    await page.goto("/providers");
    await expect(page.getByRole("button", { name: "Add provider" })).toBeVisible();
  });
});
