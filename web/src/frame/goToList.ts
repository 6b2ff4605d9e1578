/** The key that leads to the list of sessions: to the one that is open, else to the search. */
import { useNavigation } from "../store/navigation";

const LIST = "nav [data-row][tabindex='0']";
const SEARCH = "nav [data-session-search]";

export function goToList(): void {
  const { wideOpen, narrowOpen, toggle } = useNavigation.getState();
  const shown = document.querySelector(SEARCH) !== null;
  if (!shown && !(wideOpen && narrowOpen)) toggle();
  requestAnimationFrame(() => {
    (document.querySelector<HTMLElement>(LIST) ?? document.querySelector<HTMLElement>(SEARCH))?.focus();
  });
}
