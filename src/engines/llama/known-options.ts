// Reads which options an engine has, so that the preset file never holds one that would end the router.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Keys of the preset file that are no command line options. */
const presetOnly = ["load-on-startup", "stop-timeout", "dedup-cache-models"];

/** Every spelling without dashes (`ctx-size`, `c`, `LLAMA_ARG_CTX_SIZE`); null where the help text could not be read. */
export async function readKnownOptions(
  path: string,
  environment: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<ReadonlySet<string> | null> {
  try {
    const { stdout } = await promisify(execFile)(path, ["--help"], {
      env: environment,
      timeout: 10_000,
      maxBuffer: 4 << 20,
      ...(signal === undefined ? {} : { signal }),
    });
    return parseHelp(stdout);
  } catch {
    return null;
  }
}

export function parseHelp(help: string): ReadonlySet<string> | null {
  const keys = new Set(presetOnly);
  for (const line of help.split("\n")) {
    const variable = /\(env: (LLAMA_[A-Z0-9_]+)\)/.exec(line)?.[1];
    if (variable !== undefined) keys.add(variable);
    // Options stand at a line's start: `-c,    --ctx-size N   size of …`; what follows in the text may name others.
    if (!line.startsWith("-")) continue;
    for (const match of line.matchAll(/(?:^|,\s*)--?([A-Za-z][A-Za-z0-9-]*)/g)) keys.add(match[1] ?? "");
  }
  return keys.has("ctx-size") ? keys : null;
}
