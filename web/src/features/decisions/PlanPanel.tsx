import { ClipboardList } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Markdown } from "../../markdown/Markdown";
import { Button } from "../../ui/Button";
import { planOf } from "../../session/toolCalls";
import type { Json } from "../../wire/json";
import type { PanelProps } from "./panelProps";
import { DenyForm } from "./DenyForm";
import { Kbd } from "../../ui/Kbd";
import type { PermissionMode } from "../../gen/events";
import { followingModes, modeHint, modeName } from "../../session/modes";
import { useSession } from "../../store/hooks";
import { keyNames, useDecisionPanel } from "./useDecisionPanel";

export function PlanPanel({ decision, answer, call }: PanelProps & { call?: Json }) {
  const { t } = useTranslation();
  const [refusing, setRefusing] = useState(false);
  const group = useId();
  const sent = decision.state === "sent";
  // Newer agents keep the plan in a file. Without that file the request has no plan, although the model wrote one.
  const plan = planOf(decision.request.input, call);
  // The agent would go back to whatever mode it had before, which nobody remembers: it is told.
  const current = useSession(decision.request.sessionId)?.permissionMode;
  const modes = followingModes(current);
  const [mode, setMode] = useState<PermissionMode>(modes[0] ?? "default");
  const approve = () =>
    answer({
      behavior: "allow",
      updatedPermissions: [{ type: "setMode", mode, destination: "session" }],
    });
  const choose = (number: number) => setMode(modes[number - 1] ?? mode);
  const { ref, ready, marks } = useDecisionPanel<HTMLElement>(
    refusing ? {} : { allow: approve, deny: () => setRefusing(true), choose },
    sent,
  );
  return (
    <section
      ref={ref}
      {...marks}
      tabIndex={-1}
      aria-label={t("plan.label")}
      className="outline-none focus-visible:bg-wait-soft/40"
    >
      <div className="flex items-center gap-2 bg-wait-soft px-3 py-2 text-sm font-medium">
        <ClipboardList className="size-4 shrink-0 text-wait" aria-hidden />
        {t("plan.title")}
      </div>
      <div className="px-4 py-3">
        {plan ? <Markdown text={plan} /> : <p className="text-ink-3">{t("plan.empty")}</p>}
      </div>
      {!refusing && (
        <fieldset disabled={sent} className="border-t border-line px-3 py-2.5 text-sm">
          <legend className="float-left mb-1.5 w-full text-xs text-ink-2">{t("plan.then")}</legend>
          <div className="clear-both flex flex-col gap-1.5">
            {modes.map((each) => (
              <label key={each} className="flex items-baseline gap-2">
                <input
                  type="radio"
                  name={group}
                  checked={mode === each}
                  onChange={() => setMode(each)}
                  className="relative top-0.5 size-3.5 shrink-0 accent-accent"
                />
                <span className={each === "bypassPermissions" ? "font-medium text-bad" : "font-medium"}>
                  {modeName(t, each)}
                </span>
                <span className="text-xs text-ink-3">{modeHint(t, each)}</span>
              </label>
            ))}
          </div>
        </fieldset>
      )}
      <div className="border-t border-line px-3 py-2.5">
        {refusing && !sent ? (
          <DenyForm
            label={t("plan.feedback")}
            placeholder={t("plan.feedbackHint")}
            confirm={t("plan.refuse")}
            onDeny={(message) => answer({ behavior: "deny", message })}
            onBack={() => {
              setRefusing(false);
              ref.current?.focus();
            }}
          />
        ) : (
          <div className="flex flex-wrap items-center gap-2">
            <Button
              variant="primary"
              disabled={sent}
              aria-disabled={!ready}
              onClick={() => ready && approve()}
            >
              {t("plan.approve")}
              <Kbd>{keyNames.allow}</Kbd>
            </Button>
            <Button disabled={sent} onClick={() => setRefusing(true)}>
              {t("plan.refuseMore")}
              <Kbd>{keyNames.deny}</Kbd>
            </Button>
            {sent && <span className="text-xs text-ink-3">{t("decision.sent")}</span>}
          </div>
        )}
      </div>
    </section>
  );
}
