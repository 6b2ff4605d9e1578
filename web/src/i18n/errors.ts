/** What the server refused, in the page's language. The server's own words stand in for codes of a newer server. */
import i18next from "i18next";
import type { ErrorCode } from "../gen/errors";
import en from "./en.json";

/** Every code has a sentence: this does not compile without. */
const sentences: Record<ErrorCode, string> = en.error;

const isKnown = (code: string): code is ErrorCode => Object.hasOwn(sentences, code);

export function errorText({ message, code }: { message: string; code?: string }): string {
  return code !== undefined && isKnown(code) ? i18next.t(`error.${code}`, { message }) : message;
}
