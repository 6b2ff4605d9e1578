import { X } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { NewAttachment } from "../../gen/events";

/** The images that go along, each with a way to take it out. */
export function ImageStrip({
  images,
  onRemove,
}: {
  images: readonly NewAttachment[];
  onRemove: (index: number) => void;
}) {
  const { t } = useTranslation();
  if (images.length === 0) return null;
  return (
    <ul aria-label={t("images.label")} className="flex flex-wrap gap-2 px-3.5 pt-3">
      {images.map((image, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- the same image may be there twice
        <li key={index} className="relative">
          <img
            src={`data:${image.mediaType};base64,${image.data}`}
            alt={image.name ?? t("images.image")}
            className="size-16 rounded-lg border border-line object-cover"
          />
          <button
            type="button"
            aria-label={t("images.remove")}
            onClick={() => onRemove(index)}
            className="absolute -top-1.5 -right-1.5 flex size-5 items-center justify-center rounded-full border border-line-strong bg-raised text-ink-2 shadow-card hover:text-ink pointer-coarse:size-7"
          >
            <X className="size-3" aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}
