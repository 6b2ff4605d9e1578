/**
 * The whole product for one test: the executable with a home, a data folder and a project of its own, the real Claude
 * Code, and a scripted model behind it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test as base, expect, type Locator, type Page } from "@playwright/test";

/** A piece of what the model says; the testkit's documentation has them all. */
export type Part =
  | { type: "text"; text: string; chunk?: number; pause_ms?: number }
  | { type: "thinking"; thinking: string; chunk?: number }
  | { type: "tool_use"; name: string; input: Record<string, unknown>; id?: string }
  | { type: "gate"; name: string };

export interface Script {
  /** Sent with every answer: the API reports an account's limits in headers. */
  headers?: Record<string, string>;
  rules: { contains: string; replies: ({ parts: Part[] } | { error: { status: number } })[] }[];
}

interface ModelRequest {
  body: { messages: unknown[] };
}

/** What a test needs and does not find is an error that says how to get it. */
function required(variable: string, fallback: string | undefined, remedy: string): string {
  const path = process.env[variable] ?? fallback;
  if (!path || !existsSync(path))
    throw new Error(`${variable} names no file (${path ?? "not set"}): ${remedy}`);
  return path;
}

/** The older one still has TodoWrite without being asked for it. */
type ClaudeVersion = "2.1.325" | "2.1.113";

const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
const executables = {
  tiller: () => required("TILLER_TEST_BIN", undefined, "run `cargo xtask test`, or set it to a built tiller"),
  testkit: () =>
    required("TILLER_TEST_TESTKIT", undefined, "run `cargo xtask test`, or set it to a built tiller-testkit"),
  claude: (version: ClaudeVersion = "2.1.325") =>
    required(
      `TILLER_TEST_CLAUDE_${version.split(".").at(-1)}`,
      join(cache, `tiller/claude/${version}/node_modules/@anthropic-ai/claude-code-linux-x64/claude`),
      "run `cargo xtask setup`",
    ),
};

/** Starts a program and waits for the line that says it is ready. */
async function started(
  program: string,
  args: string[],
  env: Record<string, string>,
  cwd: string,
  ready: RegExp,
): Promise<{ process: ChildProcess; match: RegExpExecArray }> {
  const child = spawn(program, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stderr.on("data", (data) => {
    log += String(data);
  });
  const match = await new Promise<RegExpExecArray>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = ready.exec(line);
      if (found) resolve(found);
    });
    child.once("exit", (code) =>
      reject(new Error(`${program} ended with ${code} before it was ready:\n${log}`)),
    );
    child.once("error", reject);
  });
  return { process: child, match };
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await exit;
}

export class Model {
  private constructor(
    private readonly process: ChildProcess,
    readonly url: string,
  ) {}

  static async start(script: Script, folder: string): Promise<Model> {
    const file = join(folder, "script.json");
    writeFileSync(file, JSON.stringify(script));
    const args = ["model", "--script", file, "--port", "0"];
    const { process: child, match } = await started(executables.testkit(), args, {}, folder, /^(http:\S+)$/);
    return new Model(child, match[1] ?? "");
  }

  /** Waits until the model has come to the gate. */
  async reached(gate: string): Promise<void> {
    await fetch(`${this.url}/_testkit/gates/${gate}/reached`);
  }

  async open(gate: string): Promise<void> {
    await fetch(`${this.url}/_testkit/gates/${gate}/open`, { method: "POST" });
  }

  async requests(): Promise<ModelRequest[]> {
    return (await (await fetch(`${this.url}/_testkit/requests`)).json()) as ModelRequest[];
  }

  /** The newest request that has these words, whatever else the agent has asked for since. */
  async heard(words: string): Promise<ModelRequest> {
    const found = (await this.requests()).findLast((request) => JSON.stringify(request).includes(words));
    if (!found) throw new Error(`nobody said to the model: ${words}`);
    return found;
  }

  stop(): Promise<void> {
    return ended(this.process, "SIGTERM");
  }
}

export class Product {
  /** Where sessions work. */
  readonly project: string;
  model: Model | undefined;
  /** Whether Claude Code has something to sign in with: a key, or the token of a subscription. */
  signedIn: boolean | "subscription" = true;
  /** Which Claude Code the server drives. */
  claude: ClaudeVersion = "2.1.325";
  private server: ChildProcess | undefined;
  private readonly others: ChildProcess[] = [];

  private constructor(private readonly home: string) {
    this.project = join(home, "work", "project");
    mkdirSync(this.project, { recursive: true });
    mkdirSync(join(home, "data"));
    // Titles stay what the tests wrote; one from the model would come at any moment.
    writeFileSync(join(home, "data", "config.toml"), 'titles = "prompt"\n');
  }

  static create(): Product {
    return new Product(mkdtempSync(join(tmpdir(), "tiller-e2e-")));
  }

  /** Starts the server, or starts it again, where it was before if its port is given. Gives the link that signs in. */
  async start(script: Script | "demo", port = "0"): Promise<string> {
    if (script === "demo") {
      // The demo agent speaks at the speed of a reader, unless nobody reads.
      const environment = { ...this.agentEnvironment(), DEMO_AGENT_SPEED: "inf" };
      return this.serve(port, ["--backend", "demo"], environment);
    }
    this.model ??= await Model.start(script, this.home);
    return this.serve(port, ["--claude-bin", executables.claude(this.claude)], this.agentEnvironment());
  }

  /** Adds a line to the server's configuration. */
  configure(line: string): void {
    appendFileSync(join(this.home, "data", "config.toml"), `${line}\n`);
  }

  /** Starts the server as someone does who has never had Claude Code. */
  async startFirst(): Promise<string> {
    // Where the server looks whatever the home and the path are. What is there can't be hidden from it.
    const installed = ["/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin"];
    const hidden = !installed.some((folder) => existsSync(join(folder, "claude")));
    return this.serve("0", hidden ? [] : ["--backend", "demo"], {
      ...this.agentEnvironment(),
      PATH: join(this.home, "bin"),
    });
  }

  private async serve(port: string, agent: string[], environment: Record<string, string>): Promise<string> {
    const { process: child, match } = await started(
      executables.tiller(),
      [
        "serve",
        `--port=${port}`,
        "--no-open",
        `--data-dir=${this.home}/data`,
        `--root=${this.home}/work`,
        ...agent,
      ],
      environment,
      this.project,
      /^tiller is ready: (\S+)$/,
    );
    this.server = child;
    return match[1] ?? "";
  }

  /** A command of the program in a terminal, beside the server. Gives what it printed. */
  async command(...args: string[]): Promise<string> {
    const child = spawn(executables.tiller(), [...args, `--data-dir=${this.home}/data`], {
      env: { PATH: process.env.PATH ?? "", HOME: this.home },
      cwd: this.project,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (data) => {
      said += String(data);
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect(code, args.join(" ")).toBe(0);
    return said;
  }

  /** Where Claude Code keeps its own files. */
  get claudeHome(): string {
    return join(this.home, ".claude");
  }

  /** Someone who uses Claude Code in a terminal, and knows nothing of Tiller. Gives the conversation's id. */
  async inTerminal(prompt: string, ...args: string[]): Promise<string> {
    const child = spawn(
      executables.claude(),
      ["--print", "--output-format=json", "--permission-mode=acceptEdits", ...args, "--", prompt],
      { env: this.agentEnvironment(), cwd: this.project, stdio: ["ignore", "pipe", "inherit"] },
    );
    let said = "";
    child.stdout.on("data", (data) => {
      said += String(data);
    });
    await new Promise((resolve) => child.once("close", resolve));
    return (JSON.parse(said) as { session_id: string }).session_id;
  }

  /** Someone who goes on with a conversation in a terminal and leaves it open there. */
  keepInTerminal(conversation: string): ChildProcess {
    const args = ["--print", "--verbose", "--input-format=stream-json", "--output-format=stream-json"];
    const child = spawn(executables.claude(), [...args, "--resume", conversation], {
      env: this.agentEnvironment(),
      cwd: this.project,
      stdio: ["pipe", "ignore", "inherit"],
    });
    this.others.push(child);
    return child;
  }

  private agentEnvironment(): Record<string, string> {
    return {
      PATH: process.env.PATH ?? "",
      HOME: this.home,
      ANTHROPIC_BASE_URL: this.model?.url ?? "http://127.0.0.1:9",
      ...(this.signedIn === true && { ANTHROPIC_API_KEY: "sk-test" }),
      ...(this.signedIn === "subscription" && { CLAUDE_CODE_OAUTH_TOKEN: "sk-ant-oat01-test" }),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
    };
  }

  /** Ends the server as a service manager would. */
  async stop(): Promise<void> {
    if (this.server) await ended(this.server, "SIGTERM");
    this.server = undefined;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.others.map((child) => ended(child, "SIGKILL")));
    await this.stop();
    await this.model?.stop();
    // What was killed above may leave children that are still writing their last.
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10 });
  }
}

interface Fixtures {
  product: Product;
  /** Nothing that the page logs as an error, a refused policy included, goes unseen. */
  quiet: undefined;
}

export const test = base.extend<Fixtures>({
  // oxlint-disable-next-line no-empty-pattern -- the form that the test runner asks for
  product: async ({}, provide) => {
    const product = Product.create();
    await provide(product);
    await product.dispose();
  },
  quiet: [
    async ({ page }, provide) => {
      const complaints: string[] = [];
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("console", (message) => {
        if (/Content Security Policy|Refused to/i.test(message.text())) complaints.push(message.text());
      });
      await provide(undefined);
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

/** What a user does to begin: opens the link, writes the task, starts it. */
export async function startSession(page: Page, link: string, prompt: string): Promise<void> {
  await page.goto(link);
  await page.getByRole("textbox", { name: "Task" }).fill(prompt);
  await page.getByRole("button", { name: "Start session" }).click();
}

/**
 * Watches for words, or a button of that name, that go away by themselves: from now on, so that no moment is missed. Gives
 * what waits until they have been there.
 */
export async function watchFor(page: Page, words: string): Promise<() => Promise<void>> {
  await page.evaluate((wanted) => {
    const seen = { words: false };
    Object.assign(window, { seen });
    const look = () => {
      seen.words ||=
        document.querySelector(`[aria-label="${wanted}"]`) !== null ||
        document.body.textContent.includes(wanted);
    };
    new MutationObserver(look).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
  }, words);
  return () =>
    expect
      .poll(() => page.evaluate(() => (window as unknown as { seen: { words: boolean } }).seen.words))
      .toBe(true);
}

/** Waits until a request can be answered, for which it must have been in view for a moment, and puts the focus on it. */
export async function attend(panel: Locator): Promise<void> {
  await expect(panel).toHaveAttribute("aria-busy", "false");
  await panel.focus();
}

export function tool(page: Page, name: string) {
  return page.getByRole("article", { name: `Tool ${name}` });
}

export async function say(page: Page, text: string): Promise<void> {
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill(text);
  await message.press("Enter");
}
