// The model's process and the client of the measurements as machine code, where a compiler is there: on two cores the ones for Node
// take what the proxy is to be measured with.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { packageRoot } from "../../../src/settings/settings.ts";
import { cleanUp, type Ending } from "../../support/clean-up.ts";
import { type Answers, type ask, requestFor } from "./load.ts";
import { pin } from "./pin.ts";

const run = promisify(execFile);

/** Paths. */
export interface Programs {
  readonly emulator: string;
  readonly load: string;
}

/** Null: there is no C++ compiler. */
export async function buildPrograms(t: Ending): Promise<Programs | null> {
  const folder = await mkdtemp(join(tmpdir(), "gateway-bench-programs-"));
  cleanUp(t, () => rm(folder, { recursive: true, force: true }));
  const build = async (name: string): Promise<string> => {
    const source = join(packageRoot, "test", "bench", "wire", `${name}.cpp`);
    await run("c++", ["-O2", "-std=c++17", "-o", join(folder, name), source]);
    return join(folder, name);
  };
  try {
    return { emulator: await build("emulator"), load: await build("load") };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return null;
  }
}

/** As {@link ask}, by the compiled client. */
export async function askBy(load: string, ...asked: Parameters<typeof ask>): Promise<Answers> {
  const [target, what, count, connections] = asked;
  const flag = (is: boolean): string => (is ? "1" : "0");
  const args = [target.port, flag(what.stream), flag(target.closes), count, connections, flag((what.pace ?? 0) > 0)];
  const child = spawn(load, args.map(String), { stdio: ["pipe", "pipe", "inherit"] });
  // It begins with its request.
  await pin(1, [child.pid]);
  child.stdin.end(requestFor(target, what));
  const [found, [code]] = await Promise.all([
    json(child.stdout).catch(() => null) as Promise<Omit<Answers, "events"> | null>,
    once(child, "exit"),
  ]);
  if (found === null || code !== 0) throw new Error(`${target.name}: the client ended with ${code}`);
  return { ...found, events: what.stream ? count * (what.tokens ?? 1) : 0 };
}
