/** Tells the user that something waits or has ended while they look elsewhere: a notification, and a sound if wanted. */
import i18next from "i18next";
import { create } from "zustand";
import type { ServerEvent, SessionInfo } from "../gen/events";
import { readStored, writeStored } from "../lib/storage";
import { go } from "./route";

interface Wishes {
  readonly notify: boolean;
  readonly sound: boolean;
}

export const useWishes = create<Wishes>()(() => ({
  notify: readStored("notify") === "on",
  sound: readStored("sound") === "on",
}));

export const canNotify = (): boolean => typeof Notification === "function";

/** The browser asks the user; without their consent nothing is switched on. */
export async function wishNotifications(on: boolean): Promise<void> {
  const notify = on && canNotify() && (await Notification.requestPermission()) === "granted";
  writeStored("notify", notify ? "on" : undefined);
  useWishes.setState({ notify });
}

export function wishSound(on: boolean): void {
  writeStored("sound", on ? "on" : undefined);
  useWishes.setState({ sound: on });
  if (on) chime();
}

type Occasion = "waiting" | "completed" | "error";

/** What an event means to someone who is not looking. Pure. */
export function occasionOf(event: ServerEvent, session: SessionInfo | undefined): Occasion | undefined {
  if (!session) return undefined;
  if (event.type === "permission.request") return "waiting";
  if (event.type !== "session.status" || session.status !== "running") return undefined;
  const { status } = event.payload;
  return status === "completed" || status === "error" ? status : undefined;
}

export function tell(occasion: Occasion, session: SessionInfo): void {
  if (document.visibilityState === "visible" && document.hasFocus()) return;
  const { notify, sound } = useWishes.getState();
  if (sound) chime();
  if (!notify || !canNotify() || Notification.permission !== "granted") return;
  void show(session.title, {
    body: i18next.t(`notify.${occasion}`),
    // A later word about a session takes the place of an earlier one.
    tag: session.id,
    icon: "/favicon.svg",
  });
}

/** Phones let only the service worker show one; it also answers the click there. */
async function show(title: string, options: NotificationOptions & { tag: string }): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) {
    await worker.showNotification(title, options);
    return;
  }
  const notification = new Notification(title, options);
  notification.addEventListener("click", () => {
    window.focus();
    go({ view: "session", id: options.tag });
    notification.close();
  });
}

/** Two soft notes, made here: no file to load. */
function chime(): void {
  const audio = new AudioContext();
  [660, 880].forEach((pitch, index) => {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    const start = audio.currentTime + index * 0.14;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(0.08, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.4);
    tone.connect(volume).connect(audio.destination);
    tone.start(start);
    tone.stop(start + 0.42);
    if (index === 1) tone.addEventListener("ended", () => void audio.close());
  });
}
