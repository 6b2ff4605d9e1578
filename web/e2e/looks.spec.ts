/** Every page in both themes and on a phone: nothing that keeps anyone out, and nothing that overflows. */
import type { Page } from "@playwright/test";
import { expectAccessible } from "./access";
import { expect, type Product, test, tool } from "./product";

async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const { scroll, width } = await page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth,
    width: innerWidth,
  }));
  expect(scroll).toBeLessThanOrEqual(width);
}

/** Where a phone has parts or places of its own; elsewhere its dark colours are those of the wide page. */
const otherOnPhone = new Set(["start", "permission for a file", "question", "finished conversation", "side"]);

/** Walks through every page and panel there is, and looks at each. */
async function walk(page: Page, product: Product, phone: boolean): Promise<void> {
  // The whole tour, with a dozen examinations on the way.
  test.slow();
  const look = async (where: string) => {
    await expectAccessible(page, where, phone && !otherOnPhone.has(where) ? "light" : "both");
    await expectNoSidewaysScroll(page);
  };
  await page.goto(await product.start("demo"));
  await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();
  await look("start");
  await page.getByRole("button", { name: "Browse folders" }).click();
  await expect(page.getByRole("button", { name: "Use this folder" })).toBeVisible();
  await look("folder picker");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
  await page.getByRole("combobox", { name: "Permission mode" }).click();
  await expect(page.getByRole("option", { name: /^Plan/ })).toBeVisible();
  await look("permission modes");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("listbox")).toBeHidden();

  await page.getByRole("textbox", { name: "Task" }).fill("show me around");
  await page.getByRole("button", { name: "Start session" }).click();
  const allow = page.getByRole("button", { name: /^Allow/ });
  await expect(allow).toBeVisible();
  await look("permission for a command");
  await page.getByRole("button", { name: "Deny…" }).click();
  await expect(page.getByRole("textbox", { name: "Reason" })).toBeVisible();
  await look("reason");
  await page.getByRole("button", { name: "Back" }).click();
  await allow.click();
  await expect(page.getByRole("group", { name: "Permission for Write" })).toBeVisible();
  await look("permission for a file");
  await allow.click();
  const form = page.getByRole("form", { name: "Questions of the agent" });
  await form.getByRole("radio", { name: "Other" }).check();
  await look("question");
  await form.getByRole("radio", { name: /With both/ }).check();
  await form.getByRole("button", { name: "Confirm" }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  await look("finished conversation");
  await page.getByRole("log").focus();
  await page.keyboard.press("Home");
  await expect(page.getByRole("button", { name: "Newest" })).toBeVisible();
  await expect(tool(page, "Bash")).toBeVisible();
  await look("scrolled up");

  if (phone) {
    await page.getByRole("button", { name: "Show the navigation" }).click();
    await expect(page.getByRole("dialog", { name: "Navigation" })).toBeVisible();
    await look("side");
  }
  await page.getByRole("button", { name: "Preferences" }).click();
  await expect(page.getByRole("menuitemradio", { name: "Dark" })).toBeVisible();
  await look("preferences");
  await page.keyboard.press("Escape");
}

test("every page can be used by everyone", ({ page, product }) => walk(page, product, false));

test("the page for those who are not signed in", async ({ page, product }) => {
  const link = await product.start("demo");
  await page.goto(new URL("/", link).href);
  await expect(page.getByRole("heading", { name: "You are not signed in" })).toBeVisible();
  await expectAccessible(page, "signed out");
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  test("every page fits", ({ page, product }) => walk(page, product, true));
});

test("a chosen theme stays", async ({ page, product }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(await product.start("demo"));
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();
  const light = await background();
  await page.getByRole("button", { name: "Preferences" }).click();
  await page.getByRole("menuitemradio", { name: "Dark" }).click();
  await expect.poll(background).not.toBe(light);
  // What the browser shows around the page goes with it.
  const around = () =>
    page.evaluate(() => {
      const meta = document.querySelector<HTMLMetaElement>("meta[name=theme-color]");
      const probe = document.body.appendChild(document.createElement("span"));
      probe.style.color = meta?.content ?? "";
      const { color } = getComputedStyle(probe);
      probe.remove();
      const header = document.querySelector("header");
      return { meta: color, header: header && getComputedStyle(header).backgroundColor };
    });
  const dark = await around();
  expect(dark.meta).toBe(dark.header);
  await page.reload();
  await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();
  expect(await background()).not.toBe(light);
  expect(await around()).toEqual(dark);
});

test.describe("with motion", () => {
  test.use({ contextOptions: { reducedMotion: "no-preference" } });
  test("a theme changes everything at once", async ({ page, product }) => {
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(await product.start("demo"));
    await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();
    await page.evaluate(() => {
      const faded: string[] = [];
      Object.assign(window, { faded });
      document.addEventListener("transitionrun", ({ target, propertyName }) => {
        // Links, because none of them is what is pressed here.
        if (target instanceof HTMLAnchorElement && /color/.test(propertyName))
          faded.push(target.textContent ?? "");
      });
    });
    const faded = () => page.evaluate(() => (window as unknown as { faded: string[] }).faded);
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(background).not.toBe(light);
    expect(await faded()).toEqual([]);
    await page.getByRole("button", { name: "Preferences" }).press("Enter");
    await page.getByRole("menuitemradio", { name: "Light" }).press("Enter");
    await expect.poll(background).toBe(light);
    await expect(page.locator("html[data-switching]")).toHaveCount(0);
    // Under the pointer, colours still fade.
    await page.keyboard.press("Escape");
    await page.getByRole("navigation").getByRole("link", { name: "History" }).hover();
    await expect.poll(faded).not.toEqual([]);
    expect(new Set(await faded())).toEqual(new Set(["History"]));
  });
});
