/** How the end-to-end tests run: see README.md. */
import { defineConfig } from "@playwright/test";
import { LAUNCH, LOOK } from "./tests/browser.mjs";

export default defineConfig({
  testDir: "tests",
  testMatch: "*.e2e.mjs",
  outputDir: "test-results",
  reporter: "list",
  // Every test is independent of the others: any two may run at once, in any order.
  fullyParallel: true,
  workers: 2,
  // A flaky test is a defect of the test or of the product: it is not repeated until it passes.
  retries: 0,
  forbidOnly: true,
  // Generous, because builds may share the machine. No test waits for a time-out to pass.
  timeout: 180_000,
  expect: { timeout: 60_000 },
  use: {
    ...LOOK,
    launchOptions: LAUNCH,
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    screenshot: "only-on-failure",
    trace: { mode: "retain-on-failure", screenshots: false },
  },
});
