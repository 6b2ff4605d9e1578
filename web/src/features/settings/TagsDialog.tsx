import { X } from "lucide-react";
import { type KeyboardEvent, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { allTags, placementOf } from "../../session/arrangement";
import { tagSession } from "../../store/arrange";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";
import { tellOffline } from "./offline";
import { withTag } from "./tags";

interface TagsDialogProps {
  session: SessionInfo;
  open: boolean;
  onClose: () => void;
}

export function TagsDialog({ session, open, onClose }: TagsDialogProps) {
  const { t } = useTranslation();
  return (
    <Modal open={open} onClose={onClose} title={t("tags.title")} description={t("tags.hint")}>
      <TagsForm session={session} onClose={onClose} />
    </Modal>
  );
}

const LONGEST = 40;

function TagsForm({ session, onClose }: Omit<TagsDialogProps, "open">) {
  const { t } = useTranslation();
  const arrangement = useApp((state) => state.arrangement);
  const [tags, setTags] = useState(placementOf(arrangement, session.id).tags);
  const [typed, setTyped] = useState("");
  const known = useMemo(() => allTags(arrangement), [arrangement]);
  const has = (tag: string) => tags.some((each) => each.toLowerCase() === tag.toLowerCase());
  const wanted = typed.trim().replace(/^#/, "").toLowerCase();
  const offered = known.filter((tag) => !has(tag) && tag.toLowerCase().includes(wanted)).slice(0, 8);

  function add(tag: string): void {
    setTags(withTag(tags, tag));
    setTyped("");
  }

  function onKeyDown(event: KeyboardEvent<HTMLInputElement>): void {
    if (event.nativeEvent.isComposing) return;
    if ((event.key === "Enter" || event.key === ",") && typed.trim() !== "") {
      event.preventDefault();
      add(typed);
    } else if (event.key === "Backspace" && typed === "") setTags(tags.slice(0, -1));
  }

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (tagSession(session.id, withTag(tags, typed))) onClose();
        else tellOffline();
      }}
    >
      <div className="flex flex-wrap items-center gap-1.5 rounded-lg border border-line-strong bg-canvas p-1.5 focus-within:border-accent">
        {tags.map((tag) => (
          <span key={tag} className="flex h-6 items-center gap-0.5 rounded-md bg-active pr-0.5 pl-2 text-xs">
            {tag}
            <button
              type="button"
              aria-label={t("tags.remove", { tag })}
              onClick={() => setTags(tags.filter((each) => each !== tag))}
              className="flex size-5 items-center justify-center rounded text-ink-3 hover:text-ink"
            >
              <X className="size-3" aria-hidden />
            </button>
          </span>
        ))}
        <input
          aria-label={t("tags.add")}
          placeholder={t("tags.add")}
          value={typed}
          maxLength={LONGEST}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={onKeyDown}
          className="h-6 min-w-24 flex-1 bg-transparent px-1 text-sm outline-none"
        />
      </div>
      {offered.length > 0 && (
        <div role="group" aria-label={t("tags.known")} className="flex flex-wrap gap-1.5 pt-2.5">
          {offered.map((tag) => (
            <button
              key={tag}
              type="button"
              onClick={() => add(tag)}
              className="h-6 rounded-md border border-line px-2 text-xs text-ink-2 hover:bg-hover pointer-coarse:h-9"
            >
              {tag}
            </button>
          ))}
        </div>
      )}
      <div className="flex justify-end gap-2 pt-4">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" variant="primary">
          {t("common.save")}
        </Button>
      </div>
    </form>
  );
}
