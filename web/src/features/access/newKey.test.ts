import { expect, it } from "vitest";
import { emptyDraft, problemOf, requestOf } from "./newKey";

const named = { ...emptyDraft, name: " ci " };

it("sets no limits where nothing was chosen", () => {
  expect(problemOf(emptyDraft)).toBe("name");
  expect(problemOf(named)).toBeUndefined();
  expect(requestOf(named)).toEqual({
    name: "ci",
    scopes: ["read", "run", "approve"],
    ceiling: { sees: "own" },
  });
});

it("sends every limit that was chosen", () => {
  const draft = {
    ...named,
    scopes: ["run"] as const,
    modes: ["plan"],
    tools: "Read, Bash(git *, gh *)",
    roots: "/a\n\n /b ",
    budget: " 2.5 ",
    protection: "sandbox" as const,
    sandboxHosts: "example.com\n",
    sees: "folders" as const,
    folders: "/c\n",
    approval: "ask" as const,
  };
  expect(problemOf(draft)).toBeUndefined();
  expect(requestOf(draft)).toEqual({
    name: "ci",
    scopes: ["run"],
    approval: "ask",
    ceiling: {
      modes: ["plan"],
      tools: ["Read", "Bash(git *, gh *)"],
      roots: ["/a", "/b"],
      budgetUsd: 2.5,
      sandbox: true,
      sandboxHosts: ["example.com"],
      sees: { folders: ["/c"] },
    },
  });
  expect(requestOf({ ...named, sees: "sessions", sessions: ["x"], protection: "shield" }).ceiling).toEqual({
    shield: true,
    sees: { sessions: ["x"] },
  });
});

it("says what is missing before anything is sent", () => {
  expect(problemOf({ ...named, scopes: [] })).toBe("scopes");
  expect(problemOf({ ...named, modes: [] })).toBe("modes");
  for (const budget of ["0", "-1", "x", "Infinity"]) expect(problemOf({ ...named, budget })).toBe("budget");
  expect(problemOf({ ...named, sees: "sessions" })).toBe("sees");
  expect(problemOf({ ...named, sees: "folders", folders: " \n" })).toBe("sees");
  expect(problemOf({ ...named, scopes: ["read", "run"], approval: "auto" })).toBe("auto");
});
