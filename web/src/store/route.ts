/** Where the page is. Kept in the address, so that reload and back work. */
import { useMemo, useSyncExternalStore } from "react";

export const pageNames = [
  "inbox",
  "history",
  "examples",
  "status",
  "docs",
  "agents",
  "skills",
  "mcp",
  "plugins",
  "hooks",
  "access",
  "shortcuts",
] as const;
export type PageName = (typeof pageNames)[number];

export type Route =
  | { readonly view: "start" }
  | { readonly view: "session"; readonly id: string }
  | { readonly view: "latest" }
  /** `rest` is for the page itself: what it shows, beginning with a slash, or empty. */
  | { readonly view: "page"; readonly page: PageName; readonly rest: string };

export function parseRoute(hash: string): Route {
  const session = /^#\/s\/([\w-]+)$/.exec(hash)?.[1];
  if (session) return { view: "session", id: session };
  const [, name, rest] = /^#\/([a-z]+)(\/.*|\?.*)?$/.exec(hash) ?? [];
  const page = pageNames.find((each) => each === name);
  if (page) return { view: "page", page, rest: rest ?? "" };
  return hash === "#/new" ? { view: "start" } : { view: "latest" };
}

export function routeHash(route: Route): string {
  switch (route.view) {
    case "session":
      return `#/s/${route.id}`;
    case "page":
      return `#/${route.page}${route.rest}`;
    case "start":
      return "#/new";
    case "latest":
      return "#/";
  }
}

export function go(route: Route, how: "push" | "replace" = "push"): void {
  const hash = routeHash(route);
  if (hash === location.hash) return;
  if (how === "push") history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export const goToPage = (page: PageName): void => go({ view: "page", page, rest: "" });

export function currentRoute(): Route {
  return parseRoute(location.hash);
}

function subscribe(onChange: () => void): () => void {
  addEventListener("hashchange", onChange);
  addEventListener("popstate", onChange);
  return () => {
    removeEventListener("hashchange", onChange);
    removeEventListener("popstate", onChange);
  };
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => parseRoute(hash), [hash]);
}
