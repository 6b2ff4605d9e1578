import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { readStored } from "../../lib/storage";
import { type Loaded, useLoaded } from "../../lib/useLoaded";
import type { PageName } from "../../store/route";
import type { Inventory } from "../../gen/inventory";
import { getInventory } from "../../wire/inventory";
import { Fetched, Page } from "../../ui/Page";

/** The inventory for the folder that was worked in last. */
export function useInventory(): [Loaded<Inventory>, () => void] {
  const folder = readStored("folder");
  return useLoaded(`inventory:${folder ?? ""}`, () =>
    // A folder that is gone is no reason to show nothing: the user's own things are there all the same.
    getInventory(folder).catch(() => getInventory(undefined)),
  );
}

export function InventoryPage({
  page,
  children,
}: {
  page: PageName;
  children: (found: Inventory) => ReactNode;
}) {
  const { t } = useTranslation();
  const [loaded, reload] = useInventory();
  return (
    <Page page={page}>
      <Fetched loaded={loaded} onRetry={reload}>
        {(found) => (
          <>
            {found.problems.map((path) => (
              <p key={path} className="mb-4 flex items-start gap-2 rounded-lg bg-wait-soft px-3 py-2 text-sm">
                <TriangleAlert className="mt-0.5 size-4 shrink-0 text-wait" aria-hidden />
                <span className="min-w-0 break-all">{t("inventory.unreadable", { path })}</span>
              </p>
            ))}
            {children(found)}
            <p className="mt-6 text-xs text-ink-3">{t("inventory.folder", { folder: found.cwd })}</p>
          </>
        )}
      </Fetched>
    </Page>
  );
}
