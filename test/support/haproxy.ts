// The real HAProxy: the system's, else Debian's, unpacked with its libraries. No root.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { ignoreAbsent } from "../../src/core/errors.ts";
import { createPrivateApt } from "../../src/engines/install/apt.ts";
import { runTool } from "../../src/engines/install/run.ts";
import { packageRoot } from "../../src/settings/settings.ts";
import { cleanUp, type Ending } from "./clean-up.ts";

const home = join(packageRoot, "state", "haproxy");
const run = { environment: process.env, signal: new AbortController().signal };

/** The command that runs it; installed below `state` where there is none (9 MB to download). */
async function haproxy(): Promise<readonly [string, ...string[]]> {
  for (const folder of [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"]) {
    const path = join(folder, "haproxy");
    if (folder !== "" && (await stat(path).catch(ignoreAbsent)) !== null) return [path];
  }
  if ((await stat(home).catch(ignoreAbsent)) === null) await install();
  const folders = await readdir(join(home, "usr", "lib"));
  const libraries = join(home, "usr", "lib", folders.find((name) => name.endsWith("-linux-gnu")) ?? "");
  const loader = (await readdir(libraries)).find((name) => name.startsWith("ld-linux")) ?? "";
  // The system's own libraries may be too old.
  return [join(libraries, loader), "--library-path", libraries, join(home, "usr", "sbin", "haproxy")];
}

async function install(): Promise<void> {
  const staging = `${home}.${process.pid}`;
  try {
    const apt = await createPrivateApt(join(staging, "apt"), run);
    for (const deb of await apt.download(["haproxy"], () => undefined))
      await runTool("dpkg-deb", ["-x", deb, join(staging, "all")], run);
    await rename(join(staging, "all"), home);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Has HAProxy check a configuration; throws with its words. Answers with its version. */
export async function checkHaproxy(path: string): Promise<string> {
  const [program, ...args] = await haproxy();
  await runTool(program, [...args, "-c", "-f", path], run);
  return (await runTool(program, [...args, "-v"], run)).split("\n")[0] ?? "";
}

/** Runs until the end of `t`. */
export async function startHaproxy(t: Ending, path: string): Promise<void> {
  const [program, ...args] = await haproxy();
  const child = spawn(program, [...args, "-db", "-f", path], { stdio: "ignore" });
  const exited = once(child, "exit");
  cleanUp(t, async () => {
    child.kill("SIGKILL");
    await exited;
  });
}
