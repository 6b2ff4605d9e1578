/**
 * Diagrams. What draws them is large and wants to write styles, which the page's policy forbids; so it is fetched with the
 * first diagram, handed to a frame without an origin (`public/diagram.html`), and what comes back is only ever shown as an
 * image.
 */
import library from "@mermaid-js/tiny/dist/mermaid.tiny.js?url";
import drawing from "./diagram.frame.js?url";

export interface Picture {
  readonly svg: string;
  readonly width: number;
  readonly height: number;
}

/** Longer ones than anyone can read would keep the machine busy. */
const LONGEST = 50_000;

const FONT =
  "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif";

let frame: Promise<Window> | undefined;
let nextId = 0;
const waiting = new Map<number, { resolve: (picture: Picture) => void; reject: (error: Error) => void }>();

/** Rows that are scrolled out of sight and back are drawn anew; their diagrams are not. */
const KEPT = 40;
const kept = new Map<string, Promise<Picture>>();

export function drawDiagram(text: string, dark: boolean): Promise<Picture> {
  const key = `${dark}:${text}`;
  const picture = kept.get(key) ?? draw(text, dark);
  // Moved to the end: the first is the one that was not wanted for longest.
  kept.delete(key);
  kept.set(key, picture);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value ?? "");
  return picture;
}

async function draw(text: string, dark: boolean): Promise<Picture> {
  if (text.length > LONGEST) throw new Error("too long");
  frame ??= openFrame().catch((error: unknown) => {
    // Tried again with the next diagram.
    frame = undefined;
    throw error;
  });
  const target = await frame;
  const id = nextId;
  nextId += 1;
  const picture = new Promise<Picture>((resolve, reject) => waiting.set(id, { resolve, reject }));
  target.postMessage({ id, text, settings: settings(dark) }, "*");
  return picture;
}

async function openFrame(): Promise<Window> {
  const scripts = await Promise.all([library, drawing].map(fetchText));
  const element = document.createElement("iframe");
  element.setAttribute("sandbox", "allow-scripts");
  element.setAttribute("aria-hidden", "true");
  element.tabIndex = -1;
  // Not `display: none`: what is measured has to be laid out.
  element.className = "pointer-events-none fixed top-0 left-[-9999px] h-[600px] w-[1000px] border-0";
  element.src = "/diagram.html";
  return new Promise((resolve) => {
    addEventListener("message", ({ data, source }: MessageEvent<unknown>) => {
      const target = element.contentWindow;
      if (!target || source !== target) return;
      if (isReady(data)) resolve(target);
      else answer(data);
    });
    // A frame without an origin can't be named as the receiver; what it is sent is no secret to it.
    element.addEventListener("load", () => element.contentWindow?.postMessage({ scripts }, "*"));
    document.body.append(element);
  });
}

async function fetchText(address: string): Promise<string> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status}`);
  return response.text();
}

function isReady(data: unknown): boolean {
  return typeof data === "object" && data !== null && "ready" in data;
}

function answer(data: unknown): void {
  const { id, svg, width, height, error } = data as Partial<Picture> & { id: number; error?: string };
  const asked = waiting.get(id);
  waiting.delete(id);
  if (typeof svg === "string" && typeof width === "number" && typeof height === "number")
    asked?.resolve({ svg, width, height });
  else asked?.reject(new Error(error));
}

/** The page's own colours, in both themes. */
function settings(dark: boolean): object {
  const ink = dark ? "#ececef" : "#17181c";
  const line = dark ? "#9094a0" : "#5d616b";
  return {
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    fontFamily: FONT,
    theme: "base",
    themeVariables: {
      darkMode: dark,
      fontFamily: FONT,
      fontSize: "14px",
      background: dark ? "#131416" : "#ffffff",
      primaryColor: dark ? "#1a2440" : "#eaf0fd",
      primaryBorderColor: dark ? "#7ea6ff" : "#2f62d4",
      primaryTextColor: ink,
      secondaryColor: dark ? "#13291f" : "#e7f5ed",
      tertiaryColor: dark ? "#18191c" : "#f6f7f8",
      lineColor: line,
      textColor: ink,
      noteBkgColor: dark ? "#2c2313" : "#fdf4e1",
      noteBorderColor: dark ? "#e9b45a" : "#8f5a00",
      noteTextColor: ink,
      edgeLabelBackground: dark ? "#1b1c1f" : "#ffffff",
    },
  };
}
