// Where an engine's executable is found: the setting, PATH, the state folder, in this order. Starts and changes nothing.
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import type { EngineBinary, EngineTool } from "./catalog.ts";
import { type InstalledEngine, readInstalled } from "./folder.ts";

interface LocateOptions {
  /** The setting; it is used, or it is an error. Relative paths are relative to the working folder. */
  readonly explicit: string | undefined;
  /** The value of PATH. */
  readonly pathVariable: string;
  /** Where `installEngine` puts engines; need not exist. */
  readonly enginesDir: string;
}

/** Its real path, as the router starts itself again by it, or null. Throws `engine_missing` when the setting is no executable. */
export async function locateEngine(
  binary: EngineBinary,
  { explicit, pathVariable, enginesDir }: LocateOptions,
): Promise<string | null> {
  if (explicit !== undefined) {
    const found = await executableAt(path.resolve(explicit));
    if (found !== null) return found;
    throw new GatewayError("engine_missing", `${binary} is set to ${explicit}, which is no executable file`);
  }
  let found = await findOnPath(binary, pathVariable);
  if (found !== null) return found;
  for (const engine of await readInstalled(enginesDir)) found ??= await installedBinary(engine, binary);
  return found;
}

/** The real path of a program on PATH, or null. */
export async function findOnPath(program: string, pathVariable: string): Promise<string | null> {
  return firstExecutable(candidatesOnPath(program, pathVariable));
}

/** The real path of a tool that lies beside the real path of this llama-server, so is of its build, or null. */
export async function toolBeside(server: string, tool: EngineTool): Promise<string | null> {
  const real = await executableAt(server);
  return real === null ? null : firstExecutable(namesOf(tool).map((name) => path.join(path.dirname(real), name)));
}

/** Where a program may be, in the order of PATH. A relative part would depend on the folder the gateway was started in. */
export function candidatesOnPath(program: string, pathVariable: string): string[] {
  const folders = pathVariable.split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  return folders.flatMap((folder) => namesOf(program).map((name) => path.join(folder, name)));
}

function namesOf(program: string): string[] {
  return process.platform === "win32" ? [`${program}.exe`, program] : [program];
}

async function firstExecutable(files: readonly string[]): Promise<string | null> {
  for (const file of files) {
    const found = await executableAt(file);
    if (found !== null) return found;
  }
  return null;
}

/** The real path of one executable of an installed engine, or null when it has none or lost it. */
export async function installedBinary(engine: InstalledEngine, binary: EngineBinary): Promise<string | null> {
  const relative = engine.binaries[binary];
  return relative === undefined ? null : executableAt(path.join(engine.dir, relative));
}

/** The real path of an executable file; null for what is missing, unreadable or a loop of links. */
export async function executableAt(file: string): Promise<string | null> {
  try {
    const real = await realpath(file);
    if (!(await stat(real)).isFile()) return null;
    await access(real, constants.X_OK);
    return real;
  } catch {
    return null;
  }
}
