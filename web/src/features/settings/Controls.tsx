import { useTranslation } from "react-i18next";
import type { PermissionMode } from "../../gen/events";
import { permissionModes } from "../../session/modes";
import { effortsOf } from "../../session/models";
import type { Models } from "../../store/models";
import { Choice } from "../../ui/Choice";

/** No model or effort chosen: the agent's own default. */
const DEFAULT = "default";
const knownEfforts = ["low", "medium", "high", "xhigh", "max"] as const;

interface ControlsProps {
  models: Models;
  model: string | undefined;
  onModel: (model: string | undefined) => void;
  mode: PermissionMode;
  onMode: (mode: PermissionMode) => void;
  effort: string | undefined;
  onEffort: (effort: string | undefined) => void;
}

/** What the agent may do, which model it uses and how hard that tries. The same for a new session and a running one. */
export function Controls({ models: known, model, onModel, mode, onMode, effort, onEffort }: ControlsProps) {
  const { t } = useTranslation();
  const { models, loading } = known;
  const efforts = effortsOf(models, model);
  const listed = models.some((each) => each.value === model);
  return (
    <>
      <Choice
        label={t("start.mode")}
        value={mode}
        onChange={onMode}
        options={permissionModes.map((value) => ({
          value,
          label: t(`mode.${value}.name`),
          hint: t(`mode.${value}.hint`),
          danger: value === "bypassPermissions",
        }))}
      />
      <Choice
        label={t("start.model")}
        loading={loading}
        value={model ?? DEFAULT}
        onChange={(value) => onModel(value === DEFAULT ? undefined : value)}
        options={[
          { value: DEFAULT, label: t("start.modelDefault"), short: t("start.model") },
          ...models.map(({ value, name, description }) => ({ value, label: name, hint: description })),
          ...(model && !listed ? [{ value: model, label: model }] : []),
        ]}
      />
      {efforts.length > 0 && (
        <Choice
          label={t("start.effort")}
          value={effort ?? DEFAULT}
          onChange={(value) => onEffort(value === DEFAULT ? undefined : value)}
          options={[
            { value: DEFAULT, label: t("start.effortDefault"), short: t("start.effort") },
            ...efforts.map((value) => {
              const named = knownEfforts.find((each) => each === value);
              return { value, label: named ? t(`start.efforts.${named}`) : value };
            }),
          ]}
        />
      )}
    </>
  );
}
