// Owns where an engine's executable is found: the setting, PATH, the state folder, in this order.
// Never starts it, and never changes anything on disk.

import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import type { EngineBinary } from "./catalog.ts";
import { type InstalledEngine, readInstalled } from "./folder.ts";

export type { EngineBinary } from "./catalog.ts";

export interface LocatedEngine {
  /** Absolute, with symbolic links resolved: the router starts itself again by this path. */
  readonly path: string;
  readonly origin: "setting" | "path" | "state";
}

interface LocateOptions {
  /** The setting; it is used, or it is an error. Relative paths are relative to the working folder. */
  readonly explicit: string | undefined;
  /** The value of PATH. */
  readonly pathVariable: string;
  /** Where `installEngine` puts engines; need not exist. */
  readonly enginesDir: string;
}

/**
 * Where the executable is, or null when it is nowhere.
 * Throws `engine_missing` when the explicit setting is not an executable file.
 */
export async function locateEngine(binary: EngineBinary, options: LocateOptions): Promise<LocatedEngine | null> {
  if (options.explicit !== undefined) {
    const found = await executableAt(path.resolve(options.explicit));
    if (found === null) {
      throw new GatewayError("engine_missing", `${binary} is set to ${options.explicit}, which is no executable file`);
    }
    return { path: found, origin: "setting" };
  }
  const onPath = await findOnPath(binary, options.pathVariable);
  if (onPath !== null) return { path: onPath, origin: "path" };
  const { installed } = await readInstalled(options.enginesDir);
  for (const engine of installed) {
    const found = await installedBinary(engine, binary);
    if (found !== null) return { path: found, origin: "state" };
  }
  return null;
}

/** The real path of a program on PATH, or null. Relative and empty parts of PATH are passed over. */
export async function findOnPath(program: string, pathVariable: string): Promise<string | null> {
  const names = process.platform === "win32" ? [`${program}.exe`, program] : [program];
  for (const folder of pathVariable.split(path.delimiter)) {
    // An empty or relative part would make the result depend on the folder the gateway was started in.
    if (!path.isAbsolute(folder)) continue;
    for (const name of names) {
      const found = await executableAt(path.join(folder, name));
      if (found !== null) return found;
    }
  }
  return null;
}

/** The message if there is none. */
export async function whyNone(binary: EngineBinary, enginesDir: string): Promise<string> {
  const { strays } = await readInstalled(enginesDir);
  const stray = strays.find(({ manifest }) => manifest.binaries[binary] !== undefined);
  if (!stray) return `no ${binary} was found`;
  return `no ${binary} was found except that in ${stray.dir}, which was installed for ${stray.manifest.home} and runs only there`;
}

/** The real path of one executable of an installed engine, or null when it has none or lost it. */
export async function installedBinary(engine: InstalledEngine, binary: EngineBinary): Promise<string | null> {
  const relative = engine.manifest.binaries[binary];
  return relative === undefined ? null : await executableAt(path.join(engine.dir, relative));
}

async function executableAt(file: string): Promise<string | null> {
  try {
    const real = await realpath(file);
    if (!(await stat(real)).isFile()) return null;
    await access(real, constants.X_OK);
    return real;
  } catch {
    // Missing, unreadable, a loop of links: for a search they are all absent.
    return null;
  }
}
