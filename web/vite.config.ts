import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// In development the page comes from Vite and everything else from a running server. Open a link of the server's (`tiller
// link`) with Vite's port in it: a sign-in belongs to the origin at which the link was opened. The server takes requests
// only from its own address, so the proxy speaks to it under that name.
const server = process.env.TILLER_DEV_SERVER ?? "http://127.0.0.1:8080";
const proxied = {
  target: server,
  changeOrigin: true,
  headers: { origin: server },
};

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    target: "es2023",
    // Small assets as data: addresses would need a wider content security policy for fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What the page begins with is one file: forty small ones compress worse, and each is a request.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: "start", tags: ["$initial"] }] } },
    },
  },
  worker: { format: "es" },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/api": proxied,
      "/health": proxied,
      "^/\\?code=": proxied,
      "/ws": { ...proxied, ws: true },
    },
  },
  test: {
    include: ["src/**/*.test.{ts,tsx}"],
    environment: "node",
  },
});
