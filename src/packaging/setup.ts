// What a service file is made from. Pure, as all of this room.

export interface Setup {
  readonly version: string;
  /** What runs this program here: Node, its flags, the script. */
  readonly program: readonly string[];
  /** Who the service runs as; null: an account of its own, which has no files yet. */
  readonly account: { readonly name: string; readonly uid: number; readonly gid: number } | null;
  /** Groups of this machine that may use its GPUs. */
  readonly gpuGroups: readonly string[];
  readonly host: string;
  readonly port: number;
  /** Absolute, as all paths here. */
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly configPath: string;
  readonly writesBack: boolean;
  readonly licenseKeyFile: string | null;
  readonly hubTokenFile: string | null;
  /** Other flags of `serve` that are set here. */
  readonly flags: readonly string[];
  /** Those that name programs of this machine, which a container does not have. */
  readonly engineFlags: readonly string[];
  /** Variables that are set here and have no flag. */
  readonly variables: Readonly<Record<string, string>>;
  /** ms; see `--stop-grace`. */
  readonly stopGraceMs: number;
  /** ms; see `--stop-delay`. */
  readonly stopDelayMs: number;
}

/** Responses, then engines, then speech engines may take the grace each. */
export function stopSeconds({ stopGraceMs, stopDelayMs }: Pick<Setup, "stopGraceMs" | "stopDelayMs">): number {
  return Math.ceil((stopDelayMs + 3 * stopGraceMs) / 1000) + 15;
}

/** Of a service that runs in place, on this machine. */
export function serveHere(setup: Setup): readonly string[] {
  const { program, host, port, stateDir, configPath, engineFlags, flags } = setup;
  const own = [`--host=${host}`, `--port=${port}`, `--state=${stateDir}`, `--config=${configPath}`, "--log=json"];
  return [...program, "serve", ...own, ...engineFlags, ...flags];
}

/** Whether a path lies in a folder, or is it. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}
