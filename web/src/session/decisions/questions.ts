/** AskUserQuestion: from its input to a form's state, and from that to the answer. Pure. */
import { asObjects, asString, type Json } from "../../wire/json";

export interface Question {
  readonly question: string;
  readonly header: string | undefined;
  readonly multiSelect: boolean;
  readonly options: readonly { readonly label: string; readonly description: string | undefined }[];
}

export interface Choice {
  readonly labels: readonly string[];
  /** The user's own words; counted only while `other` is chosen. */
  readonly other: boolean;
  readonly text: string;
}

export const noChoice: Choice = { labels: [], other: false, text: "" };

export function parseQuestions(input: Json): Question[] {
  return asObjects(input.questions).map((each) => ({
    question: asString(each.question) ?? "",
    header: asString(each.header),
    multiSelect: each.multiSelect === true,
    options: asObjects(each.options).flatMap((option) => {
      const label = asString(option.label);
      return label ? [{ label, description: asString(option.description) }] : [];
    }),
  }));
}

export function toggleLabel(choice: Choice, label: string, multiSelect: boolean): Choice {
  if (!multiSelect) return { ...choice, labels: [label], other: false };
  const chosen = choice.labels.includes(label);
  return {
    ...choice,
    labels: chosen ? choice.labels.filter((each) => each !== label) : [...choice.labels, label],
  };
}

export function toggleOther(choice: Choice, multiSelect: boolean): Choice {
  return multiSelect ? { ...choice, other: !choice.other } : { ...choice, labels: [], other: true };
}

/** In the order of the options, whatever the order of the clicks. */
export function answerOf(question: Question, choice: Choice): string {
  const labels = question.options
    .map((option) => option.label)
    .filter((label) => choice.labels.includes(label));
  const text = choice.other ? choice.text.trim() : "";
  return [...labels, ...(text ? [text] : [])].join(", ");
}

/** The input with the answers written into it, or nothing while a question is open. */
export function answeredInput(input: Json, choices: readonly Choice[]): Json | undefined {
  const questions = parseQuestions(input);
  const answers = questions.map(
    (question, index) => [question.question, answerOf(question, choices[index] ?? noChoice)] as const,
  );
  if (answers.some(([, answer]) => answer === "")) return undefined;
  return { ...input, answers: Object.fromEntries(answers) };
}
