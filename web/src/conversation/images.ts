/** Images for a prompt: what may be sent, read from files that were pasted, dropped or chosen. */
import type { NewAttachment } from "../gen/events";

export const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;
export const MOST_IMAGES = 20;
const LARGEST_BYTES = 5 << 20;

export type ImageProblem = "type" | "size" | "count";

/** What is refused and why; nothing if it may be sent. */
export function problemOf(file: { type: string; size: number }, already: number): ImageProblem | undefined {
  if (!(imageTypes as readonly string[]).includes(file.type)) return "type";
  if (file.size > LARGEST_BYTES) return "size";
  return already >= MOST_IMAGES ? "count" : undefined;
}

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
