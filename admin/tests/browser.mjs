/** Chromium for the end-to-end tests and the pictures: its start, and the checks of its pages. */
import { existsSync } from "node:fs";
import { chromium } from "@playwright/test";
import { TOKEN } from "./gateway.mjs";

const SHELL = "/usr/bin/chromium-headless-shell";
const installed = existsSync(SHELL) ? SHELL : "/usr/bin/chromium";

/** The installed Chromium, without its own connections to other hosts. */
export const LAUNCH = {
  executablePath: process.env.CHROMIUM ?? installed,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
};

/** Every page's size and language, unless a test sets others. */
export const LOOK = { viewport: { width: 1440, height: 900 }, locale: "en-GB" };

export const startBrowser = () => chromium.launch(LAUNCH);

/**
 * Collects what a page of this context must not do: errors and warnings on the console, uncaught
 * exceptions, violations of the content security policy, requests to hosts other than the gateway.
 */
export async function watch(context, gateway) {
  const faults = [];
  await context.exposeBinding("refused", (_, what) =>
    faults.push(`refused by the policy: ${what}`),
  );
  await context.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) =>
      window.refused(
        `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`,
      ),
    ),
  );
  // Chromium also logs each 4xx reply. The page shows what that reply means.
  context.on("console", (message) => {
    const expected = /Failed to load resource: the server responded with a status of 4\d\d/.test(
      message.text(),
    );
    if (["error", "warning"].includes(message.type()) && !expected)
      faults.push(`${message.type()}: ${message.text()}`);
  });
  context.on("weberror", (error) => faults.push(`page: ${error.error().message}`));
  context.on("request", (request) => {
    const own = [gateway.url, "data:", "blob:"].some((start) => request.url().startsWith(start));
    if (!own) faults.push(`request to another host: ${request.url()}`);
  });
  return faults;
}

/** A page outside of the tests, for pictures, with the list of its faults. */
export async function openPage(browser, gateway, options = {}) {
  const context = await browser.newContext({ ...LOOK, baseURL: gateway.url, ...options });
  const faults = await watch(context, gateway);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return { context, page, faults };
}

/**
 * Logs in through the form, with the admin token or with this key, and waits for the first page.
 */
export async function logIn(page, key = TOKEN) {
  await page.goto("/login");
  await page.locator("input[name=key]").fill(key);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname !== "/login");
  await page.locator("#main").waitFor();
}

/** Logs in without the form. The next page that is opened has the session. */
export const authenticate = (page, key = TOKEN) =>
  page.request.post("/api/auth/login", { data: { key }, failOnStatusCode: true });
