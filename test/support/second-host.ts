// A second machine on this one: a network namespace behind a pair of virtual interfaces, whose packets can be made to vanish.
// Needs to be root in a user namespace of its own: `unshare -Urn`.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { speak } from "../../src/rpc/worker-wire.ts";
import { cleanUp } from "./clean-up.ts";
import { commandLine } from "./command.ts";
import { rpcServer } from "./engine.ts";
import { makeFolders } from "./folders.ts";

const own = "10.77.0.1";
const other = "10.77.0.2";

export interface SecondHost {
  /** `model-gateway worker` there; resolves with its HOST:PORT once it answers. */
  startWorker(): Promise<string>;
  /** From now on nothing comes back from there, not even a refusal. */
  cutOff(): void;
  reconnect(): void;
}

/** Why this machine cannot have one; null where it can. */
export function whyNoSecondHost(): string | null {
  try {
    execFileSync("unshare", ["-Urn", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], {
      stdio: "pipe",
    });
    return null;
  } catch (error) {
    return `network namespaces cannot be made here: ${String(error).split("\n")[0]}`;
  }
}

export async function makeSecondHost(t: TestContext): Promise<SecondHost> {
  const ip = (...args: readonly string[]): string => execFileSync("ip", args, { encoding: "utf8" });
  ip("link", "set", "lo", "up");
  const holder = spawn("unshare", ["-n", "sh", "-c", "echo there; exec sleep 600"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const gone = once(holder, "exit");
  cleanUp(t, async () => {
    holder.kill("SIGKILL");
    await gone;
  });
  await once(holder.stdout, "data");
  const there = ["-t", String(holder.pid), "-n"];
  const ipThere = (...args: readonly string[]): string =>
    execFileSync("nsenter", [...there, "ip", ...args], { encoding: "utf8" });
  ip("link", "add", "v0", "type", "veth", "peer", "name", "v1");
  ip("link", "set", "v1", "netns", String(holder.pid));
  ip("addr", "add", `${own}/24`, "dev", "v0");
  ip("link", "set", "v0", "up");
  ipThere("link", "set", "lo", "up");
  ipThere("addr", "add", `${other}/24`, "dev", "v1");
  ipThere("link", "set", "v1", "up");
  const hardware = /link\/ether (\S+)/.exec(ipThere("link", "show", "v1"))?.[1] ?? "";
  // Else the system would notice that nobody has the address any more, and say so.
  ip("neigh", "replace", other, "lladdr", hardware, "dev", "v0", "nud", "permanent");

  return {
    startWorker: async () => {
      const port = 50_052;
      const folders = await makeFolders(t);
      const command = commandLine(["worker", "--host", other, "--port", String(port)]);
      const worker = spawn("nsenter", [...there, ...command], {
        stdio: "ignore",
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: folders.root,
          GATEWAY_STATE: folders.stateDir,
          GGML_RPC_SERVER: await rpcServer(),
        },
      });
      const exited = once(worker, "exit");
      cleanUp(t, async () => {
        worker.kill("SIGTERM");
        await exited;
      });
      for (;;) {
        const spoken = await speak({ host: other, port }, 500).catch(() => null);
        if (spoken?.kind === "answered") return `${other}:${port}`;
        await delay(20);
      }
    },
    cutOff: () => void ipThere("addr", "del", `${other}/24`, "dev", "v1"),
    reconnect: () => void ipThere("addr", "add", `${other}/24`, "dev", "v1"),
  };
}
