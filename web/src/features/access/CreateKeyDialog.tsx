import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { baseName } from "../../lib/format";
import { permissionModes } from "../../session/modes";
import { useSessionList } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { CopyButton } from "../../ui/CopyButton";
import { Modal } from "../../ui/Modal";
import { createKey } from "../../wire/keys";
import { Field, inputClass, Option } from "./fields";
import {
  approvals,
  emptyDraft,
  type KeyDraft,
  problemOf,
  protections,
  requestOf,
  scopes,
  toggled,
  visibilities,
} from "./newKey";

interface CreateKeyDialogProps {
  open: boolean;
  onClose: () => void;
  onCreated: () => void;
}

/** Makes a key, and shows it once. */
export function CreateKeyDialog({ open, onClose, onCreated }: CreateKeyDialogProps) {
  const { t } = useTranslation();
  const [made, setMade] = useState<{ name: string; secret: string }>();
  const close = () => {
    onClose();
    setMade(undefined);
  };
  return (
    <Modal
      open={open}
      // The key is shown this once: a click beside the window is not enough to lose it.
      dismissible={made === undefined}
      onClose={close}
      title={made ? t("keys.madeTitle", { name: made.name }) : t("keys.createTitle")}
      description={made ? t("keys.madeHint") : t("keys.createHint")}
      wide
    >
      {made ? (
        <Made secret={made.secret} onClose={close} />
      ) : (
        <CreateForm
          onClose={close}
          onMade={(name, secret) => {
            setMade({ name, secret });
            onCreated();
          }}
        />
      )}
    </Modal>
  );
}

function Made({ secret, onClose }: { secret: string; onClose: () => void }) {
  const { t } = useTranslation();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <div>
      <div className="flex items-center gap-1 rounded-lg border border-line-strong bg-canvas pr-1 pl-3">
        <input
          ref={field}
          readOnly
          aria-label={t("keys.secret")}
          value={secret}
          onFocus={(event) => event.currentTarget.select()}
          className="h-10 min-w-0 flex-1 bg-transparent font-mono text-xs outline-none"
        />
        <CopyButton text={secret} label={t("keys.copy")} />
      </div>
      <p className="mt-2 text-xs text-ink-3">{t("keys.use")}</p>
      <div className="flex justify-end pt-5">
        <Button variant="primary" onClick={onClose}>
          {t("keys.kept")}
        </Button>
      </div>
    </div>
  );
}

function CreateForm({
  onClose,
  onMade,
}: {
  onClose: () => void;
  onMade: (name: string, secret: string) => void;
}) {
  const { t } = useTranslation();
  const [draft, setDraft] = useState(emptyDraft);
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const [refusal, setRefusal] = useState<string>();
  const problem = problemOf(draft);
  const change = (part: Partial<KeyDraft>) => {
    setDraft((before) => ({ ...before, ...part }));
    setRefusal(undefined);
  };
  const create = async () => {
    setTried(true);
    if (problem || busy) return;
    setBusy(true);
    try {
      const { key, secret } = await createKey(requestOf(draft));
      onMade(key.name, secret);
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  const said = refusal ?? (tried && problem ? t(`keys.problem.${problem}`) : undefined);
  return (
    <form
      className="flex flex-col gap-5"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <Field label={t("keys.name")} hint={t("keys.nameHint")}>
        {({ id, described }) => (
          <input
            id={id}
            aria-describedby={described}
            aria-invalid={tried && problem === "name"}
            autoComplete="off"
            maxLength={100}
            value={draft.name}
            onChange={(event) => change({ name: event.target.value })}
            className={`${inputClass} h-9`}
          />
        )}
      </Field>
      <Chosen legend={t("keys.scopes")}>
        {scopes.map((scope) => (
          <Option
            key={scope}
            type="checkbox"
            checked={draft.scopes.includes(scope)}
            onChange={() =>
              change({ scopes: scopes.filter((each) => toggled(draft.scopes, scope).includes(each)) })
            }
            label={t(`keys.scope.${scope}`)}
            hint={t(`keys.scopeHint.${scope}`)}
          />
        ))}
      </Chosen>
      <Chosen legend={t("keys.sees.label")}>
        {visibilities.map((each) => (
          <Option
            key={each}
            type="radio"
            name="sees"
            checked={draft.sees === each}
            onChange={() => change({ sees: each })}
            label={t(`keys.sees.${each}`)}
          />
        ))}
        {draft.sees === "sessions" && <SessionChoice draft={draft} change={change} />}
        {draft.sees === "folders" && (
          <textarea
            aria-label={t("keys.sees.folders")}
            placeholder={t("keys.foldersHint")}
            rows={2}
            spellCheck={false}
            value={draft.folders}
            onChange={(event) => change({ folders: event.target.value })}
            className={`${inputClass} mt-1 py-2 font-mono text-xs`}
          />
        )}
      </Chosen>
      <div className="grid gap-5 sm:grid-cols-2">
        <Chosen legend={t("keys.modes")}>
          {permissionModes.map((mode) => (
            <Option
              key={mode}
              type="checkbox"
              checked={draft.modes.includes(mode)}
              onChange={() =>
                change({ modes: permissionModes.filter((each) => toggled(draft.modes, mode).includes(each)) })
              }
              label={t(`mode.${mode}.name`)}
            />
          ))}
        </Chosen>
        <Chosen legend={t("keys.protection.label")}>
          {protections.map((each) => (
            <Option
              key={each}
              type="radio"
              name="protection"
              checked={draft.protection === each}
              onChange={() => change({ protection: each })}
              label={t(`keys.protection.${each}`)}
            />
          ))}
          {draft.protection === "sandbox" && (
            <>
              <textarea
                aria-label={t("keys.sandboxFolders")}
                placeholder={t("keys.sandboxFolders")}
                rows={2}
                spellCheck={false}
                value={draft.sandboxFolders}
                onChange={(event) => change({ sandboxFolders: event.target.value })}
                className={`${inputClass} mt-1 py-2 font-mono text-xs`}
              />
              <textarea
                aria-label={t("keys.sandboxHosts")}
                placeholder={t("keys.sandboxHosts")}
                rows={2}
                spellCheck={false}
                value={draft.sandboxHosts}
                onChange={(event) => change({ sandboxHosts: event.target.value })}
                className={`${inputClass} mt-1 py-2 font-mono text-xs`}
              />
            </>
          )}
        </Chosen>
        <Field label={t("keys.tools")} hint={t("keys.toolsHint")}>
          {({ id, described }) => (
            <input
              id={id}
              aria-describedby={described}
              spellCheck={false}
              autoCapitalize="off"
              value={draft.tools}
              onChange={(event) => change({ tools: event.target.value })}
              className={`${inputClass} h-9 font-mono text-xs`}
            />
          )}
        </Field>
        <Field label={t("keys.budget")} hint={t("keys.budgetHint")}>
          {({ id, described }) => (
            <input
              id={id}
              aria-describedby={described}
              inputMode="decimal"
              value={draft.budget}
              onChange={(event) => change({ budget: event.target.value })}
              className={`${inputClass} h-9 tabular-nums`}
            />
          )}
        </Field>
        <Field label={t("keys.roots")} hint={t("keys.rootsHint")}>
          {({ id, described }) => (
            <textarea
              id={id}
              aria-describedby={described}
              rows={3}
              spellCheck={false}
              value={draft.roots}
              onChange={(event) => change({ roots: event.target.value })}
              className={`${inputClass} py-2 font-mono text-xs`}
            />
          )}
        </Field>
        <Chosen legend={t("keys.approval.label")}>
          {approvals.map((each) => (
            <Option
              key={each}
              type="radio"
              name="approval"
              checked={draft.approval === each}
              onChange={() => change({ approval: each })}
              label={t(`keys.approval.${each}`)}
            />
          ))}
        </Chosen>
      </div>
      <div className="flex flex-wrap items-center justify-end gap-2">
        {said && (
          <p role="alert" className="min-w-0 flex-1 basis-60 text-sm text-bad">
            {said}
          </p>
        )}
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" variant="primary" disabled={busy}>
          {t("keys.create")}
        </Button>
      </div>
    </form>
  );
}

function Chosen({ legend, children }: { legend: string; children: React.ReactNode }) {
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className="mb-1.5 text-sm font-medium">{legend}</legend>
      {children}
    </fieldset>
  );
}

function SessionChoice({ draft, change }: { draft: KeyDraft; change: (part: Partial<KeyDraft>) => void }) {
  const { t } = useTranslation();
  const sessions = useSessionList();
  if (sessions.length === 0) return <p className="text-xs text-ink-3">{t("keys.noSessions")}</p>;
  return (
    <div className="mt-1 max-h-48 overflow-y-auto rounded-lg border border-line-strong bg-canvas px-3 py-1.5">
      {sessions.map((session) => (
        <Option
          key={session.id}
          type="checkbox"
          checked={draft.sessions.includes(session.id)}
          onChange={() => change({ sessions: toggled(draft.sessions, session.id) })}
          label={session.title}
          hint={session.cwd && baseName(session.cwd)}
        />
      ))}
    </div>
  );
}
