// Answers that are under way for as long as a test needs them, and compute little or nothing meanwhile: their model's process is
// stopped, or runs a tenth of the time.
import { readFile } from "node:fs/promises";
import type { TestContext } from "node:test";
import { systemCode } from "../../src/core/errors.ts";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { cleanUp } from "./clean-up.ts";
import type { GatewayFolders } from "./folders.ts";
import { streamChat, type TestGateway } from "./gateway.ts";
import { isRunning } from "./processes.ts";

export interface HeldAnswer {
  readonly answer: ReturnType<typeof streamChat>;
  /** Lets it go on to its end. */
  release(): void;
}

/** Resolves when its first piece has come. The model must be a slow one: a quick one has said all by then. */
export async function holdAnswer(t: TestContext, gateway: TestGateway, model: string): Promise<HeldAnswer> {
  await gateway.ask(model);
  const pid = await instanceOf(gateway, model);
  let isHeld = false;
  return new Promise((resolve, reject) => {
    const answer = streamChat(gateway.url, model, "long", () => {
      if (isHeld) return;
      isHeld = true;
      resolve({ answer, release: suspend(t, pid) });
    });
    answer.catch(reject);
  });
}

/** Stops a process; the result lets it go on, and so does the test's end. */
export function suspend(t: TestContext, pid: number): () => void {
  process.kill(pid, "SIGSTOP");
  const resume = (): void => void process.kill(pid, "SIGCONT");
  cleanUp(t, async () => {
    if (await isRunning(pid)) resume();
  });
  return resume;
}

/** Lets a loaded model compute a tenth of the time, until the test ends: an answer goes on at some ten tokens a second. */
export async function slowDown(
  t: TestContext,
  folders: Pick<GatewayFolders, "stateDir">,
  model: string,
): Promise<void> {
  const pid = await instanceOf(folders, model);
  let isStopped = false;
  let next: NodeJS.Timeout | undefined;
  const turn = (): void => {
    isStopped = !isStopped;
    try {
      process.kill(pid, isStopped ? "SIGSTOP" : "SIGCONT");
      next = setTimeout(turn, isStopped ? 45 : 5);
    } catch (error) {
      if (systemCode(error) !== "ESRCH") throw error;
    }
  };
  turn();
  cleanUp(t, () => {
    clearTimeout(next);
    if (isStopped) turn();
    clearTimeout(next);
  });
}

/** The process that serves a loaded model. */
export async function instanceOf({ stateDir }: Pick<GatewayFolders, "stateDir">, model: string): Promise<number> {
  for (const pid of await findLeftovers(stateDir)) {
    const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    if (args.includes(model)) return pid;
  }
  throw new Error(`${model} is not loaded`);
}
