import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "e2e",
  // Pictures for the documents are made when they are asked for.
  testIgnore: process.env.TILLER_SCREENSHOTS ? [] : ["**/screenshots.spec.ts"],
  outputDir: "test-results",
  // Every test starts the whole product and a real agent: two at once is what two cores carry.
  workers: 2,
  fullyParallel: true,
  // None of these is a promise: they end what will never come, on a machine as busy as may be.
  timeout: 240_000,
  expect: { timeout: 40_000 },
  forbidOnly: true,
  reporter: [["list"]],
  use: {
    viewport: { width: 1440, height: 900 },
    // Pictures of every moment cost more than the tests; what the page was is in the snapshots.
    trace: { mode: "retain-on-failure", screenshots: false, sources: false },
    screenshot: "only-on-failure",
    // Nothing that turns or breathes has to be painted sixty times a second by the processor.
    contextOptions: { reducedMotion: "reduce" },
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
