// Keeps the page's own files, and nothing else: what sessions say never goes into a cache. A page that is opened without
// a connection then shows itself and says that it is offline, instead of the browser's error.
const SHELL = "tiller-shell-1";

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  // A sign-in link is for the server alone.
  if (request.mode === "navigate" && url.pathname === "/" && url.search === "") {
    event.respondWith(networkFirst("/", request));
  } else if (url.pathname.startsWith("/assets/")) {
    event.respondWith(cacheFirst(request));
  }
});

// A notification names its session; a click shows it, in the page that is open or in a new one.
self.addEventListener("notificationclick", (event) => {
  const { notification } = event;
  const address = `/#/s/${notification.tag}`;
  notification.close();
  event.waitUntil(
    (async () => {
      const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
      if (!page) return self.clients.openWindow(address);
      await page.focus();
      return page.navigate(address);
    })(),
  );
});

async function networkFirst(key, request) {
  const cache = await caches.open(SHELL);
  try {
    const response = await fetch(request);
    if (response.ok) await keep(cache, key, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(key);
    if (kept) return kept;
    throw error;
  }
}

// Another page than the one that was kept is another release: the files of the last one are not needed any more.
async function keep(cache, key, response) {
  const kept = await cache.match(key);
  const fresh = await response.clone().text();
  if (kept && (await kept.text()) !== fresh) for (const old of await cache.keys()) await cache.delete(old);
  await cache.put(key, response);
}

// The names of these files change with their content.
async function cacheFirst(request) {
  const cache = await caches.open(SHELL);
  const kept = await cache.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}
