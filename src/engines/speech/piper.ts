// Piper as people install it, a Python package: where it is, and the command that serves one voice with it.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { GatewayError } from "../../core/errors.ts";
import { quoted } from "../../core/own-command.ts";
import { candidatesOnPath, executableAt } from "../install/locate.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import type { VoiceCommand } from "./voice-process.ts";

interface PiperOptions {
  /** A Python, or a `piper` command, which begins with the path of its Python. */
  readonly explicit: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const packageName = "'piper-tts[http]'";
const probeMs = 15_000;
const keptMs = 30_000;

/** Asks at most once in {@link keptMs}: a search starts each Python of the machine. */
export function createPiperSearch(options: PiperOptions & { readonly now: () => number }): () => Promise<string> {
  let found: Promise<string> | null = null;
  let until = 0;
  return () => {
    if (!found || options.now() >= until) {
      found = findPiper(options);
      until = options.now() + keptMs;
    }
    return found;
  };
}

/** An absolute path, not resolved: a virtual environment's Python is a link, and known by it. Throws `engine_missing`. */
export async function findPiper({ explicit, environment }: PiperOptions): Promise<string> {
  const programs =
    explicit === undefined
      ? ["python3", "python", "piper"].flatMap((name) => candidatesOnPath(name, environment["PATH"] ?? ""))
      : [path.resolve(explicit)];
  for (const program of programs) {
    const python = path.basename(program).startsWith("piper") ? await pythonOf(program) : program;
    const runs = python !== null && (await executableAt(python)) !== null;
    if (runs && (await hasPiper(python, environment))) return python;
    if (explicit === undefined) continue;
    const why = runs
      ? `has no Piper with its HTTP server: install it with \`${quoted(python)} -m pip install ${packageName}\``
      : "is no Python that runs here: name one that has Piper";
    throw new GatewayError("engine_missing", `${explicit} ${why}`);
  }
  throw new GatewayError(
    "engine_missing",
    `there is no Python in PATH that has Piper with its HTTP server: install it with \`pipx install ${packageName}\``,
  );
}

const question = `
import importlib.util as u, sys
sys.exit(0 if u.find_spec("piper.http_server") and u.find_spec("flask") else 1)
`;

async function hasPiper(python: string, environment: PiperOptions["environment"]): Promise<boolean> {
  const env = engineEnvironment(environment, {});
  return promisify(execFile)(python, ["-c", question], { env, timeout: probeMs }).then(
    () => true,
    () => false,
  );
}

/** The Python in the first line of a command that pip, pipx or uv made. */
async function pythonOf(command: string): Promise<string | null> {
  const text = await readFile(command, "utf8").catch(() => "");
  // A path that is long or has a space in it is called through the shell.
  const called = /^#!(\/\S*python[\d.]*)\s*\n/.exec(text) ?? /^'''exec' "?(\/[^"\n]*python[\d.]*)"?\s/m.exec(text);
  return called?.[1] ?? null;
}

/**
 * Serves one voice, named by its file (`model`, absolute): names would be looked for in the working folder first. Without a
 * download folder Piper takes the working folder for one, whatever the data folder is.
 */
export function piperCommand(python: string, { model, voicesDir }: Readonly<Record<"model" | "voicesDir", string>>) {
  const folders = ["--data-dir", voicesDir, "--download-dir", voicesDir];
  return {
    path: python,
    workingDir: voicesDir,
    basePath: "",
    args: (port) =>
      ["-m", "piper.http_server", "--model", model, "--host", "127.0.0.1", "--port", String(port)].concat(folders),
  } satisfies VoiceCommand;
}
