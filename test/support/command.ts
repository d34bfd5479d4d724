// The command line with an environment of its own: as a process, or in this one where only its text and its exit code matter.
import { AsyncLocalStorage } from "node:async_hooks";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { main } from "../../src/cli/main.ts";
import { packageRoot } from "../../src/settings/settings.ts";
import { cleanUp, type Ending } from "./clean-up.ts";
import { llamaServer } from "./engine.ts";
import type { GatewayFolders } from "./folders.ts";
import { patientLimits } from "./patience.ts";

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCommand {
  readonly process: ChildProcess;
  readonly exited: Promise<CommandResult>;
  /** Resolves with the match once the output has it; fails when the process ends first. */
  output(pattern: RegExp): Promise<RegExpExecArray>;
  /** The same of what it says on stderr. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
}

function environmentOf(folders: GatewayFolders, extra: Readonly<Record<string, string>>): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: folders.root,
    TMPDIR: process.env["TMPDIR"] ?? "/tmp",
    HF_HUB_CACHE: folders.cacheDir,
    HF_ENDPOINT: "http://127.0.0.1:9",
    GATEWAY_STATE: folders.stateDir,
    GATEWAY_PORT: "0",
    ...patientLimits,
    ...extra,
  };
}

/** Program and arguments of the command line: a server as `npm start` has it, and a command as it is installed. */
export function commandLine(args: readonly string[]): [string, ...string[]] {
  const { scripts } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  const flags = args[0] === "serve" ? scripts.start.split(" ").filter((word) => word.startsWith("--")) : [];
  return [process.execPath, ...flags, join(packageRoot, "dist", "program", "cli.js"), ...args];
}

/** Starts the command, with `input` as its standard input; what is left of it ends with the test, by KILL. */
export async function startCommand(
  t: Ending,
  folders: GatewayFolders,
  args: readonly string[],
  extra: Readonly<Record<string, string>> = {},
  input?: string,
): Promise<RunningCommand> {
  const environment = environmentOf(folders, { LLAMA_SERVER: await llamaServer(), ...extra });
  const [node, ...command] = commandLine(args);
  const child = spawn(node, command, {
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.end(input);
  let stdout = "";
  let stderr = "";
  const watchers = new Set<() => void>();
  child.stdout.on("data", (text: Buffer) => {
    stdout += text.toString();
    for (const look of watchers) look();
  });
  child.stderr.on("data", (text: Buffer) => {
    stderr += text.toString();
    for (const look of watchers) look();
  });
  const exited = new Promise<CommandResult>((resolve) =>
    child.once("close", (code) => resolve({ code, stdout, stderr })),
  );
  cleanUp(t, async () => {
    // Not yet asked to end: in good order, so that its engines end too.
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await exited;
  });
  const found = (text: () => string, pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(text());
        if (!match) return;
        watchers.delete(look);
        resolve(match);
      };
      watchers.add(look);
      void exited.then(() => reject(new Error(`ended without ${pattern}:\n${stdout}\n${stderr}`)));
      look();
    });
  return {
    process: child,
    exited,
    output: (pattern) => found(() => stdout, pattern),
    said: (pattern) => found(() => stderr, pattern),
  };
}

export async function runCommand(
  t: Ending,
  folders: GatewayFolders,
  args: readonly string[],
  extra: Readonly<Record<string, string>> = {},
  input?: string,
): Promise<CommandResult> {
  return (await startCommand(t, folders, args, extra, input)).exited;
}

/** What goes to stdout and stderr by a command that runs here, and not by anything beside it. */
const outputs = new AsyncLocalStorage<{ stdout: string; stderr: string }>();

for (const stream of [process.stdout, process.stderr]) {
  const name = stream === process.stdout ? "stdout" : "stderr";
  const write = stream.write.bind(stream) as (...args: readonly unknown[]) => boolean;
  stream.write = (...args: readonly unknown[]): boolean => {
    const output = outputs.getStore();
    if (output === undefined) return write(...args);
    output[name] += String(args[0]);
    const done = args.at(-1);
    if (typeof done === "function") process.nextTick(done);
    return true;
  };
}

/** In this process: a process of its own costs a tenth to a third of a second, most of it for loading. Not for what has signals or input. */
export async function commandHere(
  folders: GatewayFolders,
  args: readonly string[],
  extra: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const environment = environmentOf(folders, { LLAMA_SERVER: await llamaServer(), ...extra });
  const output = { stdout: "", stderr: "" };
  const code = await outputs.run(output, () => main(args, environment));
  return { code, ...output };
}
