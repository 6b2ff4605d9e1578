/** Which dialog about a session is open. One place, because menus and the palette open the same ones. */
import { create } from "zustand";

export type SessionDialog = "rename" | "terminal" | "hooks" | "delete" | "tags" | "group";

interface DialogState {
  readonly open: { readonly dialog: SessionDialog; readonly sessionId: string } | undefined;
}

export const useDialogs = create<DialogState>()(() => ({ open: undefined }));

export const openDialog = (dialog: SessionDialog, sessionId: string): void =>
  useDialogs.setState({ open: { dialog, sessionId } });

export const closeDialog = (): void => useDialogs.setState({ open: undefined });
