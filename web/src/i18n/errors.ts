/** What the server refused, in the page's language. The server's own words stand in for codes that have none here. */
import i18next from "i18next";

const codes = [
  "prompt_empty",
  "prompt_too_long",
  "working_dir_invalid",
  "working_dir_locked",
  "session_not_found",
  "unknown_session",
  "session_deleted",
  "no_resume_id",
  "request_not_found",
  "already_answered",
  "attachment_invalid",
  "unknown_model",
  "queue_changed",
  "busy",
  "invalid_request",
  "forbidden",
  "rate_limited",
  "internal",
  "storage",
  "held_up",
] as const;

export function errorText({ message, code }: { message: string; code?: string }): string {
  const known = codes.find((each) => each === code);
  return known ? i18next.t(`error.${known}`) : message;
}
