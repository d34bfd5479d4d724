// Owns making installed engines run again that were moved or copied with their state folder, without a download.

import { readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { writeAtomic } from "../../state/atomic-file.ts";
import { engineFacts } from "./catalog.ts";
import { withInterpreter } from "./elf.ts";
import { type InstalledEngine, readStrays, writeManifest } from "./folder.ts";
import { findPrefix } from "./prefix.ts";
import { findExecutables } from "./relocate.ts";
import { type RunOptions, runTool } from "./run.ts";

/** Gives, for each one that still does not run, why. */
export async function rehomeEngines(enginesDir: string, run: RunOptions): Promise<string[]> {
  const problems: string[] = [];
  for (const engine of await readStrays(enginesDir)) {
    try {
      await rehome(engine, run);
    } catch (error) {
      problems.push(toGatewayError(error).message);
    }
  }
  return problems;
}

/** Libraries and backends are found relative to the executables; the loader alone is not. The manifest comes last. */
async function rehome({ dir, manifest }: InstalledEngine, run: RunOptions): Promise<void> {
  const home = await realpath(dir);
  const prefix = await findPrefix(home);
  for (const name of await findExecutables(prefix)) {
    const file = path.join(home, name);
    const changed = withInterpreter(await readFile(file), path.join(home, prefix.loader));
    if (changed === null) throw new GatewayError("engine_failed", `${file} names no loader`);
    // Renamed into its place: the file may be open in a process, or linked from a copy.
    await writeAtomic(file, changed, 0o755);
  }
  const { main, proof } = engineFacts[manifest.name];
  await runTool(path.join(home, manifest.binaries[main] ?? ""), proof, { ...run, timeoutMs: 30_000 });
  await writeManifest(home, { ...manifest, home });
}
