// A private apt: its own lists and archives in one folder, the system's mirror, proxy and keyring. No root.
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { aptConfiguration, mirrorsIn, pathOptions, sourceLine } from "./apt-config.ts";
import { type RunOptions, runTool } from "./run.ts";

/** Sets up an apt in `dir` and fetches the package list. Throws `engine_missing` when the system names no mirror of Debian. */
export async function createPrivateApt(dir: string, run: RunOptions) {
  const [mirror] = mirrorsIn(await runTool("apt-get", ["update", "--print-uris"], run));
  if (mirror === undefined)
    throw new GatewayError("engine_missing", "the system's apt sources name no mirror of Debian's main archive");
  const architecture = (await runTool("dpkg", ["--print-architecture"], run)).trim();
  const archives = path.join(dir, "cache", "archives");
  await mkdir(path.join(archives, "partial"), { recursive: true });
  await mkdir(path.join(dir, "lists", "partial"), { recursive: true });
  await writeFile(path.join(dir, "status"), "");
  await writeFile(path.join(dir, "apt.conf"), aptConfiguration(architecture));
  await writeFile(path.join(dir, "sources.list"), sourceLine(mirror, architecture));
  const apt = (args: readonly string[], onOutput: RunOptions["onOutput"] = () => undefined): Promise<string> =>
    runTool("apt-get", ["-c", path.join(dir, "apt.conf"), ...pathOptions(dir), "-q", ...args], { ...run, onOutput });
  await apt(["update"]);

  return {
    /** The packages with all that they depend on, as apt resolves it; `size` in bytes, `version` with its epoch. */
    resolve: async (packages: readonly string[]) =>
      parseUris(await apt(["-q", "-y", "--print-uris", "install", ...packages])),
    /** Fetches them, checked against the signed lists; gives the paths of the files. */
    async download(packages: readonly string[], onPercent: (percent: number) => void): Promise<string[]> {
      await apt(["-y", "-o", "APT::Status-Fd=1", "--download-only", "install", ...packages], (text) => {
        const percent = /^dlstatus:[^:]*:([\d.]+):/m.exec(text)?.[1];
        if (percent !== undefined) onPercent(Number(percent));
      });
      // The last status may come before the last file.
      onPercent(100);
      const files = await readdir(archives);
      return files.filter((file) => file.endsWith(".deb")).map((file) => path.join(archives, file));
    },
  };
}

/** `'URI' name_version_arch.deb size hash`, one line for each file; `%3a` in the name is the epoch's colon. */
function parseUris(listing: string) {
  return [...listing.matchAll(/^'[^']*' (\S+) (\d+) /gm)].map(([, file = "", size]) => {
    const [name = "", version = ""] = file.split("_");
    return { file, package: name, version: decodeURIComponent(version), size: Number(size) };
  });
}
