/** Whether the user looks for something in the conversation. What is looked for stays when the bar is closed. */
import { create } from "zustand";
import { currentRoute } from "./route";

interface FindState {
  /** The session in which something is looked for. */
  readonly session: string | undefined;
  readonly query: string;
  /** Rises whenever the bar is asked for, so that an open one takes the focus again. */
  readonly asked: number;
}

export const useFinding = create<FindState>()(() => ({ session: undefined, query: "", asked: 0 }));

/** With the words that are selected on the page, as browsers do. */
export function openFind(): void {
  const route = currentRoute();
  if (route.view !== "session") return;
  const selected = getSelection()?.toString().trim() ?? "";
  const words = selected.includes("\n") || selected.length > 200 ? "" : selected;
  useFinding.setState(({ query, asked }) => ({
    session: route.id,
    query: words || query,
    asked: asked + 1,
  }));
}

export const closeFind = (): void => useFinding.setState({ session: undefined });
export const lookFor = (query: string): void => useFinding.setState({ query });
