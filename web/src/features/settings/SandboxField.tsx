import type { SessionInfo } from "../../gen/events";
import { onDemand } from "../../lib/onDemand";
import { configureSession } from "../../store/controller";
import { type Sandbox, SandboxButton, type SandboxChoiceProps } from "./SandboxButton";

export const noSandbox: Sandbox = { level: "off", hosts: [], folders: [] };

/** Its form is fetched beside the rest of the page. */
export const SandboxChoice = onDemand<SandboxChoiceProps>(() => import("./SandboxPopover"), SandboxButton);

/** The sandbox of a session; a change holds from the next turn on. */
export function SandboxField({ session }: { session: SessionInfo }) {
  const { settings, agent } = session;
  return (
    <SandboxChoice
      value={{
        level: settings.sandbox ?? "off",
        hosts: settings.sandboxHosts ?? [],
        folders: settings.sandboxFolders ?? [],
      }}
      effective={agent.sandbox}
      impossible={agent.notShielded}
      onChange={({ level, hosts, folders }) =>
        configureSession(session.id, {
          sandbox: level,
          sandboxHosts: [...hosts],
          sandboxFolders: [...folders],
        })
      }
      className="h-7 text-xs text-ink-3"
    />
  );
}
