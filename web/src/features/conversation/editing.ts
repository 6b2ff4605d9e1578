/** Which earlier prompt is being written anew. One at a time, and outside the rows, which come and go as the list scrolls. */
import { create } from "zustand";

const useEdited = create<{ readonly key: string | undefined }>()(() => ({ key: undefined }));

export const useEditing = (key: string): boolean => useEdited((state) => state.key === key);
export const beginEditing = (key: string): void => useEdited.setState({ key });
export const endEditing = (): void => useEdited.setState({ key: undefined });
