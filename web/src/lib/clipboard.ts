/**
 * Copies a text. To a page that was not loaded securely, as from another machine in the network, browsers leave only the
 * old way: a field that is selected for a moment.
 */
export async function copyText(text: string): Promise<void> {
  // What the types call present is missing there.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard) return clipboard.writeText(text);
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.setAttribute("aria-hidden", "true");
  field.className = "sr-only";
  // Inside a dialog if there is one: it takes the focus back from everything outside.
  (before?.closest("[role=dialog]") ?? document.body).append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  if (!copied) throw new Error("the browser refused to copy");
}
