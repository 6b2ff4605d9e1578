/** A quiet line between what was said. */
import type { ReactNode } from "react";
import type { Item } from "../../session/items";
import { RawButton } from "../../tools/RawButton";

export interface LineProps {
  sessionId: string;
  item: Item;
  icon: ReactNode;
  children: ReactNode;
}

export function Line({ sessionId, item, icon, children }: LineProps) {
  return (
    <div
      tabIndex={-1}
      className="group/row relative flex min-h-7 items-start gap-1.5 px-1 py-[5px] text-xs text-ink-3 outline-none [&>svg]:mt-0.5 [&>svg]:shrink-0"
    >
      {icon}
      <div className="min-w-0 flex-1">{children}</div>
      <RawButton sessionId={sessionId} seqs={item.seqs} />
    </div>
  );
}

/** Short facts with dots between them. A dot at the beginning of a wrapped line lies outside and is not seen. */
export function Facts({ lead, facts }: { lead: ReactNode; facts: readonly ReactNode[] }) {
  return (
    <div className="overflow-hidden">
      <ul className="-ml-3 flex flex-wrap">
        {[lead, ...facts].map((fact, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- each fact has its place
          <li key={index} className="relative pl-3 tabular-nums">
            <span aria-hidden className="absolute left-1 text-ink-3">
              ·
            </span>
            {fact}
          </li>
        ))}
      </ul>
    </div>
  );
}
