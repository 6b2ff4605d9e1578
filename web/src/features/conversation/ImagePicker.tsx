import { ImagePlus } from "lucide-react";
import { useRef } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "../../ui/IconButton";
import { imageTypes } from "../../store/images";

/** The button for those who have images as files, and can't drop or paste them. */
export function ImagePicker({ onPick }: { onPick: (files: File[]) => void }) {
  const { t } = useTranslation();
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field}
        type="file"
        accept={imageTypes.join(",")}
        multiple
        tabIndex={-1}
        aria-label={t("images.add")}
        className="hidden"
        onChange={(event) => {
          onPick([...(event.target.files ?? [])]);
          // So that the same file can be picked again.
          event.target.value = "";
        }}
      />
      <IconButton label={t("images.add")} onClick={() => field.current?.click()}>
        <ImagePlus className="size-4" />
      </IconButton>
    </>
  );
}
