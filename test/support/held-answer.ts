// An answer that is under way for as long as a test needs it, and computes nothing meanwhile: its model's process is stopped.
import { readFile } from "node:fs/promises";
import type { TestContext } from "node:test";
import { cleanUp } from "./clean-up.ts";
import { streamChat, type TestGateway } from "./gateway.ts";
import { childrenOf, isRunning } from "./processes.ts";

export interface HeldAnswer {
  readonly answer: ReturnType<typeof streamChat>;
  /** Lets it go on to its end. */
  release(): void;
}

/** Resolves when its first piece has come. The model must be a slow one: a quick one has said all by then. */
export async function holdAnswer(t: TestContext, gateway: TestGateway, model: string): Promise<HeldAnswer> {
  await gateway.ask(model);
  const pid = await instanceOf(gateway, model);
  const release = (): void => void process.kill(pid, "SIGCONT");
  let isHeld = false;
  return new Promise((resolve, reject) => {
    const answer = streamChat(gateway.url, model, "long", () => {
      if (isHeld) return;
      isHeld = true;
      process.kill(pid, "SIGSTOP");
      cleanUp(t, async () => {
        if (await isRunning(pid)) release();
      });
      resolve({ answer, release });
    });
    answer.catch(reject);
  });
}

/** The process that serves a loaded model. */
async function instanceOf({ gateway }: TestGateway, model: string): Promise<number> {
  for (const pid of await childrenOf(gateway.status().router.pid ?? 0)) {
    const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    if (args.includes(model)) return pid;
  }
  throw new Error(`${model} is not loaded`);
}
