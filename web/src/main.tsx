import "./app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, preloadParts } from "./App";
import { DecisionPanel } from "./features/decisions/Decision";
import { followSystemTheme } from "./ui/theme";
import { setUpLanguage } from "./i18n";
import { whenIdle } from "./lib/onDemand";
import { Markdown } from "./markdown/Markdown";
import { preloadPanel } from "./features/panel/Panel";
import { announceCredential } from "./features/access/announce";
import { connect } from "./store/controller";
import { Diff } from "./tools/Diff";
import { toasts } from "./ui/toasts";
import { takePageSecret } from "./wire/pageSecret";

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root element");

takePageSecret();
await setUpLanguage();
followSystemTheme();
connect((message) => toasts.add({ title: message, type: "error", priority: "high" }), announceCredential);
// What the first conversation will need, so that it does not wait, nor fail when the connection does.
whenIdle(() => {
  Markdown.preload();
  DecisionPanel.preload();
  preloadPanel();
  preloadParts();
  Diff.preload();
});
// While developing, files change under their names; the page is then not to be kept.
if (import.meta.env.PROD && "serviceWorker" in navigator)
  whenIdle(() => void navigator.serviceWorker.register("/sw.js").catch(() => {}));

createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
