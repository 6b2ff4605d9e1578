/** Which conversation of a folder 'continue' means: the newest one, whether it was begun here or in a terminal. */
import { useEffect, useState } from "react";
import type { SessionInfo } from "../../gen/events";
import type { Session } from "../../gen/history";
import { lookUp } from "../../store/controller";
import { getProjects, getSessions } from "../../wire/history";

export type Latest =
  | { readonly kind: "session"; readonly id: string; readonly title: string }
  /** Not known here yet: it is resumed under its own id. */
  | { readonly kind: "conversation"; readonly id: string; readonly title: string };

/** A path is typed letter by letter; only where it rests is asked about. */
const TYPING_PAUSE_MS = 250;

const trimmed = (folder: string) => folder.trim().replace(/(.)\/+$/, "$1");

/** `sessions` are newest first. */
export function latestOf(
  folder: string,
  sessions: readonly SessionInfo[],
  conversation: Session | undefined,
): Latest | undefined {
  const own = sessions.find((session) => session.cwd === trimmed(folder));
  const known = conversation && sessions.find(({ claudeSessionId }) => claudeSessionId === conversation.id);
  const later =
    conversation && !known && (!own || Date.parse(conversation.last_active) > own.updatedAt)
      ? conversation
      : undefined;
  if (later) return { kind: "conversation", id: later.id, title: later.title };
  return own && { kind: "session", id: own.id, title: own.title };
}

export function useLatest(folder: string, sessions: readonly SessionInfo[]): Latest | undefined {
  const path = trimmed(folder);
  const [found, setFound] = useState<{ path: string; conversation: Session | undefined }>();
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      newestConversation(path).then(
        (conversation) => {
          if (!current) return;
          // A session of ours has the id of its conversation, whichever page of the list it is on.
          if (conversation) lookUp(conversation.id);
          setFound({ path, conversation });
        },
        // Without a history there are still the sessions.
        () => current && setFound({ path, conversation: undefined }),
      );
    }, TYPING_PAUSE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [path]);
  return latestOf(folder, sessions, found?.path === path ? found.conversation : undefined);
}

async function newestConversation(path: string): Promise<Session | undefined> {
  const { projects } = await getProjects();
  const project = projects.find((each) => each.path === path);
  if (!project) return undefined;
  return (await getSessions({ project: project.id, limit: 1 })).sessions[0];
}
