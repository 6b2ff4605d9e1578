/** Thirty and three thousand sessions: the list stays calm, draws only what is in sight, and finds everything. */
import { idOf, list, opened, row } from "./many";
import { expectAccessible } from "./access";
import { expect, test } from "./product";

for (const count of [30, 3000]) {
  test(`${count} sessions are calm: found, walked and counted, and only those in sight are drawn`, async ({
    page,
    product,
  }) => {
    const server = await opened(page, product, count);
    try {
      // What waits is there at once, however far down it stands; so is what is pinned.
      await expect(row(page, `part ${count - 1}`)).toBeVisible();
      await expect(row(page, `part ${count - 3}`)).toBeVisible();
      await expect(page).toHaveTitle(/^\(2\)/);
      await expect(page.getByRole("link", { name: "Inbox 2" })).toBeVisible();
      expect(await list(page).locator("[data-row]").count()).toBeLessThan(60);
      await expectAccessible(page, `${count} sessions`);

      // The oldest one that waits comes first, and the key goes round.
      await page.keyboard.press("Alt+j");
      await expect(page).toHaveURL(new RegExp(`${idOf(count - 1)}$`));
      await page.keyboard.press("Alt+j");
      await expect(page).toHaveURL(new RegExp(`${idOf(2)}$`));

      // Anything is found by a part of its name, on pages that nobody has scrolled to, too.
      await page.keyboard.press("Alt+s");
      const search = list(page).getByRole("searchbox");
      await search.fill(`part ${count - 5}`);
      await expect(row(page, `part ${count - 5}`)).toBeVisible();
      await search.press("Enter");
      await expect(page).toHaveURL(new RegExp(`${idOf(count - 5)}$`));
      await search.press("Escape");
      // Its row is in the list although its project shows only the first few.
      await expect(row(page, `part ${count - 5}`)).toHaveAttribute("aria-current", "page");

      // To the end and back with the keys: what has the focus is drawn.
      await row(page, `part ${count - 5}`).focus();
      await page.keyboard.press("End");
      const focused = list(page).locator("[data-row]:focus");
      await expect(focused).toBeInViewport();
      await page.keyboard.press("Home");
      await expect(list(page).getByRole("button", { name: /Needs you/ })).toBeFocused();
      await page.keyboard.press("e");
      await expect(focused).toContainText("Explain");
      expect(await list(page).locator("[data-row]").count()).toBeLessThan(60);
    } finally {
      await server.close();
    }
  });
}
