/** The tools that can be granted without asking, and their comma-separated form on the wire. */

/** Those of Claude Code that act or look; what asks the user always asks. */
export const grantableTools = [
  "Bash",
  "Read",
  "Edit",
  "Write",
  "NotebookEdit",
  "Glob",
  "Grep",
  "WebFetch",
  "WebSearch",
  "Task",
  "TodoWrite",
] as const;

/** `Read, Bash(git log:*), Bash(a,b)` has three parts: commas inside parentheses belong to their rule. */
export function parseTools(list: string | undefined): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const letter of list ?? "") {
    if (letter === "(") depth += 1;
    if (letter === ")") depth = Math.max(0, depth - 1);
    if (letter === "," && depth === 0) {
      parts.push(part);
      part = "";
    } else part += letter;
  }
  parts.push(part);
  return [...new Set(parts.map((each) => each.trim()).filter(Boolean))];
}

export function toggleTool(list: readonly string[], tool: string): string[] {
  return list.includes(tool) ? list.filter((each) => each !== tool) : [...list, tool];
}
