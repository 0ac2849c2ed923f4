/**
 * The two pages of the API reference: they load only from the gateway, under their policies, and
 * can send requests.
 */
import { expect, test } from "./fixtures.mjs";
import { TOKEN } from "./gateway.mjs";

const READERS = [
  {
    path: "scalar",
    address: "scalar#tag/overview/POST/api/actions/overview/getOverviewData",
    listed: async (page) => {
      const closed = page.getByRole("button", { name: /^Open Group - (?!Models)/ });
      for (let left = await closed.count(); left > 0; left--) await closed.first().click();
      return page
        .locator("a[href*='/api/']")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
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
      page
        .locator(".opblock-summary-path")
        .evaluateAll((paths) => paths.map((path) => path.dataset.path)),
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
  test(`${path} draws every operation and tries one`, async ({ gateway, page }) => {
    const answer = await page.goto(`/api/actions/${address}`);
    expect(answer.headers()["content-security-policy"]).not.toMatch(/unsafe-eval|https?:|\*/);
    await expect(page.getByText("/api/actions/overview/getOverviewData").first()).toBeVisible();
    const described = await fetch(`${gateway.url}/api/actions/openapi.json`).then((reply) =>
      reply.json(),
    );
    const drawn = await listed(page);
    for (const each of Object.keys(described.paths)) expect(drawn.join("\n"), each).toContain(each);
    const [reply] = await Promise.all([
      page.waitForResponse((reply) => reply.url().endsWith("/overview/getOverviewData")),
      ask(page),
    ]);
    expect(reply.status()).toBe(200);
    expect((await reply.json()).ok).toBe(true);
  });

  for (const [colorScheme, width] of [
    ["light", 1440],
    ["dark", 390],
  ]) {
    test.describe(() => {
      test.use({ colorScheme, viewport: { width, height: 844 } });

      test(`${path}, ${colorScheme}, ${width} pixels wide`, async ({ page }) => {
        await page.goto(`/api/actions/${path}`);
        await expect(page.getByText("tollgate administration API").first()).toBeVisible();
        const dark = await page.evaluate(() => {
          const [red] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
          return red < 100;
        });
        expect(dark).toBe(colorScheme === "dark");
        const sideways = await page.evaluate(
          () => document.documentElement.scrollWidth - innerWidth,
        );
        expect(sideways, "pixels too wide").toBeLessThanOrEqual(0);
      });
    });
  }
}

test("the web UI links to it and loads none of it", async ({ page }) => {
  await page.goto("/api/actions/scalar");
  const loaded = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  await page.goto("/login");
  await page.locator("input[name=key]").fill(TOKEN);
  await page.keyboard.press("Enter");
  const link = page.getByRole("link", { name: "API reference" });
  await expect(link).toHaveAttribute("href", "/api/actions/scalar");
  expect(loaded.filter((one) => one.startsWith("/reference/"))).toEqual([]);
});
