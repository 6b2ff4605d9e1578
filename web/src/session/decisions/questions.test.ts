import { describe, expect, it } from "vitest";
import { answeredInput, noChoice, parseQuestions, toggleLabel, toggleOther } from "./questions";

const input = {
  questions: [
    {
      question: "Which?",
      header: "DB",
      multiSelect: false,
      options: [{ label: "A", description: "first" }, { label: "B" }],
    },
    { question: "What else?", multiSelect: true, options: [{ label: "X" }, { label: "Y" }] },
  ],
  metadata: 1,
};

describe("questions", () => {
  it("are read leniently", () => {
    expect(parseQuestions({ questions: [{ question: "q", options: [{}, { label: "l" }] }] })).toEqual([
      {
        question: "q",
        header: undefined,
        multiSelect: false,
        options: [{ label: "l", description: undefined }],
      },
    ]);
    expect(parseQuestions({})).toEqual([]);
  });

  it("take one label, or several in the order of the options", () => {
    const single = toggleLabel(toggleLabel(noChoice, "A", false), "B", false);
    const several = toggleLabel(toggleLabel(noChoice, "Y", true), "X", true);
    expect(answeredInput(input, [single, several])).toEqual({
      ...input,
      answers: { "Which?": "B", "What else?": "X, Y" },
    });
  });

  it("take the user's own words, beside labels where several may be chosen", () => {
    const own = { ...toggleOther(toggleLabel(noChoice, "A", false), false), text: " mine " };
    const both = { ...toggleOther(toggleLabel(noChoice, "X", true), true), text: "more" };
    expect(answeredInput(input, [own, both])?.answers).toEqual({ "Which?": "mine", "What else?": "X, more" });
  });

  it("are not answered while one is open", () => {
    expect(answeredInput(input, [toggleLabel(noChoice, "A", false), noChoice])).toBeUndefined();
    expect(
      answeredInput(input, [toggleOther(noChoice, false), toggleLabel(noChoice, "X", true)]),
    ).toBeUndefined();
  });
});
