// How a command of this program is typed so that it works as it stands: for every message that names one. Pure.

/** The whole line for a command and its operands. */
export type OwnCommand = (...words: readonly string[]) => string;

/** These call a gateway; the others read its state folder only. */
const asking = new Set(
  (
    "plan diff apply wait status ps logs models pull rm gc history rollback export reset run load eject ctx show " +
    "search files rpc voice transcriber speak transcribe doctor"
  ).split(" "),
);

export function ownCommand(start: {
  /** Absolute, as all paths here. The script that was started: a checkout's `cli.js`, or the name under which a package manager linked it. */
  readonly script: string;
  /** Whether the shell finds `model-gateway` by itself. */
  readonly isOnPath: boolean;
  /** Whether npm runs it, as `npm start`. */
  readonly isNpmStart: boolean;
  readonly workingDir: string;
  readonly state: { readonly dir: string; readonly isDefault: boolean };
  /** Flags that say where the gateway listens, as far as they differ from the defaults. */
  readonly where: readonly string[];
}): OwnCommand {
  const { script, isOnPath, isNpmStart, workingDir, state, where } = start;
  const program = isOnPath ? ["model-gateway"] : ["node", nearest(workingDir, script)];
  const folder = state.isDefault ? [] : ["--state", nearest(workingDir, state.dir)];
  return (...words) => {
    const [name = ""] = words;
    const flags = asking.has(name) ? [...folder, ...where] : name === "help" ? [] : folder;
    const line =
      isNpmStart && name === "serve" ? npmStart([...words.slice(1), ...flags]) : [...program, ...words, ...flags];
    return line.map(quoted).join(" ");
  };
}

/** npm keeps flags for itself that do not stand behind `--`. */
function npmStart(flags: readonly string[]): readonly string[] {
  return ["npm", "start", ...(flags.length > 0 ? ["--", ...flags] : [])];
}

/** From the working folder where it lies in there, else absolute. Never like a flag. */
function nearest(workingDir: string, path: string): string {
  if (path === workingDir) return ".";
  const base = workingDir.replace(/[\\/]$/, "");
  const [separator = "", short = ""] = path.startsWith(base)
    ? [path.charAt(base.length), path.slice(base.length + 1)]
    : [];
  return /[\\/]/.test(separator) && !short.startsWith("-") ? short : path;
}

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
