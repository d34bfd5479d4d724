// What component tests need all the time: a folder that goes with the test, and waiting for a condition.
import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { GatewayError } from "../../src/core/errors.ts";
import { cleanUp } from "./clean-up.ts";
import { patienceMs } from "./patience.ts";

export async function scratchFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "component-"));
  // Watchers and processes that are still ending may write once more.
  cleanUp(t, () => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Resolves with the first value that is neither false, null nor undefined; fails after a while, saying what was missed. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  timeoutMs = patienceMs,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = Date.now() + timeoutMs;
  // Long waits look less often: a look is often a request.
  for (let waitMs = 4; ; waitMs = Math.min(20, waitMs * 1.2)) {
    const found = await look();
    if (found !== false && found !== null && found !== undefined) return found as NonNullable<Exclude<T, false>>;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** The error, in our own terms, of something that must fail. */
export async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const outcome = await work.then(
    () => "it was done",
    (error: unknown) => error,
  );
  if (outcome instanceof GatewayError) return outcome;
  throw new Error("not refused in our terms", { cause: outcome });
}

/** Arguments with which this Node runs the fake engine: `startProcess({ path: process.execPath, args: fakeEngine(...) })`. */
export function fakeEngine(...flags: readonly string[]): string[] {
  const script = fileURLToPath(new URL("./fake-engine.js", import.meta.url));
  if (!existsSync(script)) throw new Error(`${script} is not built`);
  return [script, ...flags];
}
