/** Answers that were on their way as something changed: what the event stream said since stays on the page. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, startBrowser, startGateway } from "./gateway.mjs";

/** Something that happens once, and can be waited for. */
function signal() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

let gateway;
let browser;
before(async () => {
  gateway = await startGateway();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test("a circuit that trips while the page reads its state shows all the same", async () => {
  const { id } = await gateway.action("providers/addProvider", {
    name: "fragile",
    url: gateway.mockUrl,
    key: "fragile-key-0123456789",
    circuit_breaker_failure_threshold: 1,
    max_retry_attempts: 1,
  });
  const bob = await gateway.action("users/addUser", { name: "bob" });
  const { context, page } = await openPage(browser, gateway);
  await logIn(page, gateway);
  await page.goto(`${gateway.url}/providers?id=${id}`);
  const row = page.getByRole("row", { name: /fragile/ });
  await row.getByText("Never used").waitFor();

  // The gateway answers, and the answers stay on the way until the circuit has tripped.
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
  await page.getByRole("dialog", { name: "Disable fragile?" }).getByRole("button", { name: "Disable" }).click();
  await asked.promise;
  await gateway.action("providers/editProvider", { providerId: id, is_enabled: true });
  await gateway.direct("default?key=fragile-key-0123456789", { status: 500 });
  holding = false;
  assert.ok((await gateway.ask(bob.defaultKey.key)).status >= 500);
  // The page asks again; one that does not is given the late answers all the same.
  await Promise.race([again.promise, new Promise((done) => setTimeout(done, 10_000))]);
  tripped.resolve();
  await Promise.all(late);
  await row.getByText("Circuit open").waitFor();
  await page.getByRole("dialog").getByText("Circuit open").first().waitFor();
  await context.close();
});
