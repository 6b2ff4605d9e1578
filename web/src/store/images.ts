/** Images for a prompt: what may be sent, read from files that were pasted, dropped or chosen. */
import type { NewAttachment } from "../gen/events";

export const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;
export const MOST_IMAGES = 20;
const LARGEST_BYTES = 5 << 20;
/** All of a prompt's together: the server takes messages of 32 MiB, in which they are a third longer. */
const LARGEST_TOTAL_BYTES = 22 << 20;

export type ImageProblem = "type" | "size" | "count" | "total";

/** `already`: the sizes of those that go along. What is refused and why; nothing if it may be sent. */
export function problemOf(
  file: { type: string; size: number },
  already: readonly number[],
): ImageProblem | undefined {
  if (!(imageTypes as readonly string[]).includes(file.type)) return "type";
  if (file.size > LARGEST_BYTES) return "size";
  if (already.length >= MOST_IMAGES) return "count";
  const total = already.reduce((sum, size) => sum + size, file.size);
  return total > LARGEST_TOTAL_BYTES ? "total" : undefined;
}

export const sizeOf = ({ data }: NewAttachment): number => Math.ceil((data.length * 3) / 4);

export async function readImage(file: File): Promise<NewAttachment> {
  const address = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("unreadable")));
    reader.readAsDataURL(file);
  });
  return {
    mediaType: file.type,
    data: address.slice(address.indexOf(",") + 1),
    name: file.name || undefined,
  };
}

export const imageFiles = (transfer: DataTransfer | null): File[] =>
  [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
