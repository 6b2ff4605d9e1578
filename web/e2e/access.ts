/** Nothing that keeps anyone out, as far as a program can tell. */
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect } from "./product";

/** Both themes at each stop, unless said: everything in the light, and in the dark what the dark can change. */
export async function expectAccessible(
  page: Page,
  where: string,
  themes: "both" | "light" = "both",
): Promise<void> {
  // A menu or a list of options lies over the page, outside its landmarks, as such things do.
  const popup = (await page.getByRole("menu").or(page.getByRole("listbox")).count()) > 0;
  await show(page, "light");
  await examine(page, `${where}, light`, (axe) => axe.disableRules(popup ? ["region"] : []));
  if (themes === "light") return;
  await show(page, "dark");
  await examine(page, `${where}, dark`, (axe) => axe.withRules(["color-contrast"]));
}

async function show(page: Page, theme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme: theme });
  await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
}

export async function examine(
  page: Page,
  where: string,
  choose: (axe: AxeBuilder) => AxeBuilder = (axe) => axe,
): Promise<void> {
  // Measured when nothing moves: a colour halfway through a transition is no colour of ours.
  await page.evaluate(async () => {
    const ending = document
      .getAnimations()
      .filter((each) => each.effect?.getComputedTiming().iterations !== Infinity);
    // One that is cancelled has ended, too.
    await Promise.allSettled(ending.map((each) => each.finished));
  });
  // In the page itself, without a second one for its frames, and without reasons for what is right: half the time.
  const axe = new AxeBuilder({ page }).options({ resultTypes: ["violations"] }).setLegacyMode(true);
  const { violations } = await choose(axe).analyze();
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n  ")}`,
  );
  expect(found, where).toEqual([]);
}
