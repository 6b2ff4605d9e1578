import "./app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { setUpLanguage } from "./i18n";
import { connect } from "./store/controller";
import { toasts } from "./ui/toasts";

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root element");

await setUpLanguage();
connect((message) => toasts.add({ title: message, type: "error", priority: "high" }));
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
