/** The two pages of the API reference: drawn from the gateway alone, under their policies, and of use for trying operations. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage, startBrowser, startGateway, TOKEN } from "./gateway.mjs";

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

/** A page that also notes what its content security policy stopped, caught or not. */
async function open(path, options) {
  const opened = await openPage(browser, gateway, options);
  // Megabytes of script, on a machine that may have other work.
  opened.page.setDefaultTimeout(30_000);
  await opened.page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
      console.error("stopped by the policy", violatedDirective, blockedURI),
    );
  });
  const answer = await opened.page.goto(`${gateway.url}/api/actions/${path}`);
  return { ...opened, policy: answer.headers()["content-security-policy"] };
}

const READERS = [
  {
    path: "scalar",
    address: "scalar#tag/overview/POST/api/actions/overview/getOverviewData",
    listed: async (page) => {
      const closed = page.getByRole("button", { name: /^Open Group - (?!Models)/ });
      for (let left = await closed.count(); left > 0; left--) await closed.first().click();
      return page.locator("a[href*='/api/']").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    },
    ask: async (page) => {
      await page.getByPlaceholder("Token").fill(TOKEN);
      await page.getByRole("button", { name: /^Test Request .*getOverviewData/ }).click();
      await page.getByRole("button", { name: /^Send post request to/ }).click();
    },
  },
  {
    path: "docs",
    address: "docs",
    listed: (page) =>
      page.locator(".opblock-summary-path").evaluateAll((paths) => paths.map((path) => path.dataset.path)),
    ask: async (page) => {
      await page.getByRole("button", { name: "Authorize" }).first().click();
      await page.getByLabel("auth-bearer-value").fill(TOKEN);
      await page.getByRole("button", { name: "Apply credentials" }).first().click();
      await page.locator(".btn-done").first().click();
      await page.locator("[data-path$='/getOverviewData']").click();
      await page.getByRole("button", { name: "Try it out" }).click();
      await page.getByRole("button", { name: "Execute" }).click();
    },
  },
];

for (const { path, address, listed, ask } of READERS) {
  test(`${path} draws every operation and tries one`, async () => {
    const { page, context, faults, policy } = await open(address);
    assert.doesNotMatch(policy, /unsafe-eval|https?:|\*/);
    await page.getByText("/api/actions/overview/getOverviewData").first().waitFor();
    const described = await fetch(`${gateway.url}/api/actions/openapi.json`).then((reply) => reply.json());
    const drawn = await listed(page);
    for (const each of Object.keys(described.paths)) assert.ok(drawn.join("\n").includes(each), each);
    const [reply] = await Promise.all([
      page.waitForResponse((reply) => reply.url().endsWith("/overview/getOverviewData")),
      ask(page),
    ]);
    assert.equal(reply.status(), 200);
    assert.equal((await reply.json()).ok, true);
    await context.close();
    assert.deepEqual(faults, []);
  });

  for (const [colorScheme, width] of [
    ["light", 1440],
    ["dark", 390],
  ]) {
    test(`${path}, ${colorScheme}, ${width} pixels wide`, async () => {
      const { page, context, faults } = await open(path, { colorScheme, viewport: { width, height: 844 } });
      await page.getByText("tollgate administration API").first().waitFor();
      const dark = await page.evaluate(() => {
        const [red] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
        return red < 100;
      });
      assert.equal(dark, colorScheme === "dark");
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(sideways <= 0, `${sideways} pixels too wide`);
      await context.close();
      assert.deepEqual(faults, []);
    });
  }
}

test("the web UI links to it and loads none of it", async () => {
  const { page, context } = await open("scalar");
  const loaded = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  await page.goto(`${gateway.url}/login`);
  await page.locator("input[name=key]").fill(TOKEN);
  await page.keyboard.press("Enter");
  const link = page.getByRole("link", { name: "API reference" });
  assert.equal(await link.getAttribute("href"), "/api/actions/scalar");
  assert.deepEqual(
    loaded.filter((one) => one.startsWith("/reference/")),
    [],
  );
  await context.close();
});
