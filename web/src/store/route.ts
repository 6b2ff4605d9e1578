/** Where the page is: a session, or the start view. Kept in the address, so that reload and back work. */
import { useSyncExternalStore } from "react";

export type Route =
  | { readonly view: "start" }
  | { readonly view: "session"; readonly id: string }
  | { readonly view: "latest" };

export function parseRoute(hash: string): Route {
  const session = /^#\/s\/([\w-]+)$/.exec(hash)?.[1];
  if (session) return { view: "session", id: session };
  return hash === "#/new" ? { view: "start" } : { view: "latest" };
}

export function routeHash(route: Route): string {
  if (route.view === "session") return `#/s/${route.id}`;
  return route.view === "start" ? "#/new" : "#/";
}

export function go(route: Route, how: "push" | "replace" = "push"): void {
  const hash = routeHash(route);
  if (hash === location.hash) return;
  if (how === "push") history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

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
  return parseRoute(useSyncExternalStore(subscribe, () => location.hash));
}
