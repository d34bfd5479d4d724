// Takes tokens, keys and passwords out of this process's environment, once the settings have been read from it. Every process
// of the same user may read /proc/PID/environ, and so may an engine that the gateway starts.
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { isSecretName } from "../engines/process/engine-environment.ts";

/** Returns the variables that others can still read; none on a system without such a file. */
export function forgetSecrets(): readonly string[] {
  const names = Object.entries(process.env).flatMap(([name, value]) => (isSecret(name, value ?? "") ? [name] : []));
  for (const name of names) delete process.env[name];
  if (process.platform !== "linux" || names.length === 0) return [];
  try {
    overwrite(new Set(names));
    return [];
  } catch {
    // Some containers and hardened kernels let no process write its own memory this way.
    return names;
  }
}

function isSecret(name: string, value: string): boolean {
  return isSecretName(name) || /:\/\/[^/\s]*@/.test(value);
}

/** The kernel shows the bytes that the process was started with, whatever became of its variables. */
function overwrite(names: ReadonlySet<string>): void {
  const stat = readFileSync("/proc/self/stat", "utf8");
  // `env_start` is the 50th field; the second one, a name in brackets, may have blanks.
  const start = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[47]);
  const block = readFileSync("/proc/self/environ");
  const memory = openSync("/proc/self/mem", "r+");
  try {
    for (let at = 0; at < block.length; ) {
      const end = block.indexOf(0, at) < 0 ? block.length : block.indexOf(0, at);
      const [name = ""] = block.toString("utf8", at, end).split("=", 1);
      if (names.has(name)) writeSync(memory, Buffer.alloc(end - at), 0, end - at, start + at);
      at = end + 1;
    }
  } finally {
    closeSync(memory);
  }
}
