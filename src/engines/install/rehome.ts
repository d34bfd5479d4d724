// Owns making installed engines run again that were moved or copied with their state folder, without a download.

import { readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { writeAtomic } from "../../state/atomic-file.ts";
import { engineFacts } from "./catalog.ts";
import { type InstalledEngine, readStrays, writeManifest } from "./folder.ts";
import { findExecutables, findPrefix } from "./relocate.ts";
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

/** PT_INTERP */
const interpreterType = 3;

/**
 * The executable with another loader; null where it names none, or is not of 64 bits and little-endian. The path goes to the end of
 * the file: the kernel reads it from there, however long it is, and everything else stays in its place.
 */
function withInterpreter(executable: Buffer, interpreter: string): Buffer | null {
  const ident = executable.toString("latin1", 0, 6);
  if (ident !== "\u007fELF\u0002\u0001") return null;
  const headers = Number(executable.readBigUInt64LE(32));
  const size = executable.readUInt16LE(54);
  const count = executable.readUInt16LE(56);
  const all = Array.from({ length: count }, (_, index) => headers + index * size);
  const header = all.find((at) => executable.readUInt32LE(at) === interpreterType);
  if (header === undefined) return null;
  const text = Buffer.from(`${interpreter}\0`);
  const changed = Buffer.concat([executable, text]);
  changed.writeBigUInt64LE(BigInt(executable.length), header + 8);
  changed.writeBigUInt64LE(BigInt(text.length), header + 32);
  return changed;
}
