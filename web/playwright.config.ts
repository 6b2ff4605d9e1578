import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "e2e",
  // Pictures for the documents are made when they are asked for.
  testIgnore: process.env.TILLER_SCREENSHOTS ? [] : ["**/screenshots.spec.ts"],
  outputDir: "test-results",
  // Every test starts the whole product and a real agent: two at once is what two cores carry.
  workers: 2,
  fullyParallel: true,
  timeout: 120_000,
  expect: { timeout: 15_000 },
  forbidOnly: true,
  reporter: [["list"]],
  use: {
    viewport: { width: 1440, height: 900 },
    trace: "retain-on-failure",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: process.env.TILLER_TEST_CHROMIUM || "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-sync",
        "--no-first-run",
      ],
    },
  },
});
