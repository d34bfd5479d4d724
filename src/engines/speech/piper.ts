// Piper as people install it, a Python package: where it is, and the command that serves one voice with it.
// Starts no server: that is voice-process.ts.
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { GatewayError } from "../../core/errors.ts";
import { quoted } from "../../core/own-command.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import type { VoiceCommand } from "./voice-process.ts";

export interface PiperInstallation {
  /** Absolute path of the Python that has it. Not resolved: a virtual environment's Python is a link, and known by it. */
  readonly python: string;
}

/** A voice on disk; its description lies beside it as `.onnx.json`. */
export interface VoiceOnDisk {
  /** Absolute path of the `.onnx` file. */
  readonly model: string;
  /** The folder of all voices. */
  readonly voicesDir: string;
}

const packageName = "'piper-tts[http]'";
const probeMs = 15_000;
const missingKeptMs = 30_000;

/**
 * `explicit` is a Python, or a `piper` command, which begins with the path of its Python. Throws `engine_missing`, saying
 * what is missing.
 */
export async function findPiper(options: {
  readonly explicit: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}): Promise<PiperInstallation> {
  const { explicit } = options;
  const environment = engineEnvironment(options.environment, {});
  const programs =
    explicit === undefined
      ? await onPath(["python3", "python", "piper"], options.environment["PATH"] ?? "")
      : [path.resolve(explicit)];
  let missing = `there is no Python with Piper in PATH: install it with \`pipx install ${packageName}\``;
  for (const program of programs) {
    const python = path.basename(program).startsWith("piper") ? await pythonOf(program) : program;
    const found = python === null ? "no-python" : await probe(python, environment);
    if (python !== null && found === "all") return { python };
    const byPip = `install it with \`${quoted(python ?? "")} -m pip install ${packageName}\``;
    if (found === "no-flask") missing = `the Piper of ${python} lacks its HTTP server's part (flask): ${byPip}`;
    else if (explicit === undefined) continue;
    else if (found === "nothing") missing = `${explicit} has no Piper: ${byPip}`;
    else missing = `${explicit} is no Python that runs here: name one that has Piper`;
  }
  throw new GatewayError("engine_missing", missing);
}

/** Finds it at most once in {@link missingKeptMs}, and not again while it is there: a search starts each Python of the machine. */
export function createPiperSearch(
  options: Parameters<typeof findPiper>[0] & { readonly now: () => number },
): () => Promise<PiperInstallation> {
  let found: PiperInstallation | null = null;
  let missing: { readonly error: unknown; readonly until: number } | null = null;
  return async () => {
    if (found && (await isExecutable(found.python))) return found;
    if (missing && options.now() < missing.until) throw missing.error;
    try {
      found = await findPiper(options);
      return found;
    } catch (error) {
      found = null;
      missing = { error, until: options.now() + missingKeptMs };
      throw error;
    }
  };
}

/**
 * Serves one voice, named by its file: names would be looked for in the working folder first. Without a download folder
 * Piper takes the working folder for one, whatever the data folder is.
 */
export function piperCommand({ python }: PiperInstallation, voice: VoiceOnDisk): VoiceCommand {
  return {
    path: python,
    workingDir: voice.voicesDir,
    basePath: "",
    args: (port) => [
      "-m",
      "piper.http_server",
      "--model",
      voice.model,
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
      "--data-dir",
      voice.voicesDir,
      "--download-dir",
      voice.voicesDir,
    ],
  };
}

const question = `
import importlib.util as u
try:
    server = u.find_spec("piper.http_server")
except ImportError:
    server = None
print("piper:" + ("all" if server and u.find_spec("flask") else "no-flask" if server else "nothing"))
`;

async function probe(python: string, environment: Readonly<Record<string, string>>): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(python, ["-c", question], { env: environment, timeout: probeMs });
    return /^piper:([a-z-]+)$/m.exec(stdout)?.[1] ?? "nothing";
  } catch {
    // No Python, or one that does not run here.
    return "no-python";
  }
}

async function onPath(names: readonly string[], pathVariable: string): Promise<string[]> {
  const endings = process.platform === "win32" ? [".exe", ""] : [""];
  const found: string[] = [];
  for (const name of names) {
    for (const folder of pathVariable.split(path.delimiter)) {
      if (!path.isAbsolute(folder)) continue;
      for (const ending of endings) {
        const file = path.join(folder, name + ending);
        if (await isExecutable(file)) found.push(file);
      }
    }
  }
  return found;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** The Python in the first line of a command that pip, pipx or uv made. */
async function pythonOf(command: string): Promise<string | null> {
  const text = await readFile(command, "utf8").catch(() => "");
  // A path that is long or has a space in it is called through the shell.
  const called = /^#!(\/\S*python[\d.]*)\s*\n/.exec(text) ?? /^'''exec' "?(\/[^"\n]*python[\d.]*)"?\s/m.exec(text);
  return called?.[1] ?? null;
}
