/**
 * The fixtures of the end-to-end tests. Each test has a separate gateway and mock provider, on free
 * ports and an empty database, and a page whose console, policy and requests are checked.
 */
import { writeFileSync } from "node:fs";
import { test as base, expect } from "@playwright/test";
import { watch } from "./browser.mjs";
import { startGateway } from "./gateway.mjs";
import { startPostgres } from "./postgres.mjs";

export { expect };

/**
 * The longest delay of the API's replies in ms: `E2E_DELAY`, to find what a slow network breaks.
 */
const DELAY = Number(process.env.E2E_DELAY ?? 0);

async function delay(route) {
  await new Promise((done) => setTimeout(done, Math.random() * DELAY));
  await route.continue().catch(() => undefined);
}

export const test = base.extend({
  /** Settings of the gateway that a test changes, by environment variable. */
  settings: [{}, { option: true }],

  /** Matches the faults (see `watch`) that a test causes on purpose. */
  expectedFaults: [undefined, { option: true }],

  gateway: async ({ settings }, use, info) => {
    const gateway = await startGateway(settings);
    await use(gateway);
    await gateway.stop();
    if (info.status !== info.expectedStatus)
      writeFileSync(info.outputPath("gateway.log"), gateway.log());
  },

  baseURL: ({ gateway }, use) => use(gateway.url),

  context: async ({ context, gateway, expectedFaults }, use) => {
    const faults = await watch(context, gateway);
    if (DELAY) await context.route("**/api/actions/**", delay);
    await use(context);
    expect(
      faults.filter((fault) => !expectedFaults?.test(fault)),
      "faults of the pages",
    ).toEqual([]);
  },

  /** The open dialogs: a panel, a form, a question. */
  dialog: ({ page }, use) => use(page.getByRole("dialog")),

  /** `field(name)` is the field of the front dialog with this label. */
  field: ({ dialog }, use) => use((name) => dialog.last().getByLabel(name, { exact: true })),

  /** A PostgreSQL server, one per worker; `undefined` if PostgreSQL is not installed. */
  postgres: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright wants a destructured argument
    async ({}, use) => {
      const postgres = startPostgres();
      await use(postgres);
      postgres?.remove();
    },
    { scope: "worker", timeout: 120_000 },
  ],
});
