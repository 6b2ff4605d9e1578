/** Files of the server. A link can't carry the page's secret, so they are fetched and handed to the browser from here. */
import { request } from "./api";

/** How long a tab that was opened has to read its file. */
const READING_MS = 60_000;

/** The address of a file, good until it is revoked. */
export async function fileAddress(path: string, signal?: AbortSignal): Promise<string> {
  const response = await request(path, signal ? { signal } : {});
  return URL.createObjectURL(await response.blob());
}

/** The bytes of a file, as base64. */
export async function fileBytes(path: string): Promise<string> {
  const blob = await (await request(path)).blob();
  const reader = new FileReader();
  const read = new Promise<string>((resolve, reject) => {
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("The file can't be read.")));
  });
  reader.readAsDataURL(blob);
  const address = await read;
  return address.slice(address.indexOf(",") + 1);
}

/** The file itself. */
export async function fileContent(path: string, name: string): Promise<File> {
  const blob = await (await request(path)).blob();
  return new File([blob], name, { type: blob.type });
}

/** Saves a file under the name that the server gives it. */
export async function download(path: string): Promise<void> {
  const response = await request(path);
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName(response.headers.get("Content-Disposition")) ?? "";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), READING_MS);
}

/** Shows a text in a tab of its own. As text, whatever it is: what a tool has said must not act. */
export async function openText(path: string): Promise<void> {
  // Opened at once: later the browser would take it for something that nobody asked for.
  const tab = window.open("about:blank", "_blank");
  try {
    const text = await (await request(path)).text();
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
    if (tab) {
      tab.opener = null;
      tab.location.replace(address);
    }
    setTimeout(() => URL.revokeObjectURL(address), READING_MS);
  } catch (error) {
    tab?.close();
    throw error;
  }
}

export function fileName(disposition: string | null): string | undefined {
  return /filename="([^"]+)"/.exec(disposition ?? "")?.[1];
}
