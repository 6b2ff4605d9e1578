import { Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "../../ui/Button";
import { Page } from "../../ui/Page";
import { CreateKeyDialog } from "./CreateKeyDialog";
import { Keys } from "./Keys";
import { SignIns } from "./SignIns";

/** Who can get in beside this browser: keys for programs, and other browsers. */
export function AccessPage() {
  const { t } = useTranslation();
  const [creating, setCreating] = useState(false);
  /** Counts the keys that were made here, so that the list follows. */
  const [made, setMade] = useState(0);
  return (
    <Page
      page="access"
      actions={
        <Button variant="primary" onClick={() => setCreating(true)}>
          <Plus className="size-4" aria-hidden />
          {t("keys.create")}
        </Button>
      }
    >
      <Keys made={made} onCreate={() => setCreating(true)} />
      <SignIns />
      <CreateKeyDialog
        open={creating}
        onClose={() => setCreating(false)}
        onCreated={() => setMade((count) => count + 1)}
      />
    </Page>
  );
}
