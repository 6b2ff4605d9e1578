import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { readStored, writeStored } from "../lib/storage";
import { setApiLanguage } from "../wire/api";
import en from "./en.json";

export const languages = ["en", "zh-CN"] as const;
export type Language = (typeof languages)[number];

declare module "i18next" {
  interface CustomTypeOptions {
    resources: { translation: typeof en };
  }
}

/** The language chosen here before, else the first of the browser's that we speak. */
export function pickLanguage(stored: string | undefined, preferred: readonly string[]): Language {
  const chosen = languages.find((language) => language === stored);
  if (chosen) return chosen;
  for (const tag of preferred) {
    if (tag.toLowerCase().startsWith("zh")) return "zh-CN";
    if (tag.toLowerCase().startsWith("en")) return "en";
  }
  return "en";
}

function follow(language: Language): void {
  document.documentElement.lang = language;
  setApiLanguage(language);
}

/** English is there for whatever another language lacks; the others come when they are spoken. */
const catalogues: Partial<Record<Language, () => Promise<{ default: object }>>> = {
  "zh-CN": () => import("./zh-CN.json"),
};

async function learn(language: Language): Promise<void> {
  const load = catalogues[language];
  if (!load || i18next.hasResourceBundle(language, "translation")) return;
  i18next.addResourceBundle(language, "translation", (await load()).default);
}

export async function setUpLanguage(): Promise<void> {
  const language = pickLanguage(readStored("language"), navigator.languages);
  follow(language);
  await i18next.use(initReactI18next).init({
    lng: "en",
    fallbackLng: "en",
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false },
    returnNull: false,
  });
  await speak(language);
}

async function speak(language: Language): Promise<void> {
  await learn(language);
  await i18next.changeLanguage(language);
}

export async function chooseLanguage(language: Language): Promise<void> {
  writeStored("language", language);
  follow(language);
  await speak(language);
}
