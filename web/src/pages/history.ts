/** The history's page, which has a folder of its own. It takes what follows its name in the address. */
import type { ComponentType } from "react";

const found = import.meta.glob<{ HistoryPage: ComponentType }>("../history/HistoryPage.tsx");
const load = Object.values(found)[0];

export const hasHistory = load !== undefined;

export async function loadHistory(): Promise<ComponentType> {
  if (!load) throw new Error("this build has no history page");
  return (await load()).HistoryPage;
}
