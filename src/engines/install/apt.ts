// A private apt: its own source line, lists and archives in one folder, the system's mirror, proxy and keyring. No root.

import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { type RunOptions, runTool } from "./run.ts";

/** The Debian release that carries the engines; Debian 12 and 13 do not. */
export const debianSuite = "forky";
const debianSuites =
  "buster bullseye bookworm trixie forky duke sid oldoldstable oldstable stable testing unstable".split(" ");
/** The name of the keyring differs between releases. */
const archiveKeyrings = [
  "/usr/share/keyrings/debian-archive-keyring.pgp",
  "/usr/share/keyrings/debian-archive-keyring.gpg",
];

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

/** The system's stays in force below it, for its proxy; not its hooks, which fail without root: a container's clean the package cache. */
export function aptConfiguration(architecture: string): string {
  return `
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "${architecture}";
APT::Architectures { "${architecture}"; };
APT::Install-Recommends "false";
APT::Install-Suggests "false";
// The system may accept unsigned lists and packages; the engine runs with the gateway's rights.
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
// As root, apt would fetch as the user _apt, who cannot enter a private state folder.
APT::Sandbox::User "root";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
`;
}

/** As arguments, since apt's configuration format has no way to write a quote inside a path. */
function pathOptions(dir: string): string[] {
  const settings: Record<string, string> = {
    "Dir::State": dir,
    "Dir::State::status": path.join(dir, "status"),
    "Dir::State::lists": path.join(dir, "lists"),
    "Dir::Cache": path.join(dir, "cache"),
    "Dir::Cache::archives": path.join(dir, "cache", "archives"),
    // A container's configuration keeps neither, and each call of apt then reads the whole package list.
    "Dir::Cache::pkgcache": path.join(dir, "cache", "pkgcache.bin"),
    "Dir::Cache::srcpkgcache": path.join(dir, "cache", "srcpkgcache.bin"),
    "Dir::Etc::sourcelist": path.join(dir, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferences": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
  };
  return Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
}

function sourceLine(mirror: string, architecture: string): string {
  const keyring = archiveKeyrings.find(existsSync);
  const options = [
    `arch=${architecture}`,
    "target=Packages",
    "lang=none",
    "pdiffs=no",
    // A mirror may be a snapshot of a past day, whose list is signed but past its date.
    "check-valid-until=no",
    ...(keyring === undefined ? [] : [`signed-by=${keyring}`]),
  ];
  return `deb [${options.join(" ")}] ${mirror} ${debianSuite} main\n`;
}

/** `'http://…/debian/dists/bookworm/main/binary-amd64/Packages.xz' …`; the security archive (`bookworm-security`) is another tree. */
export function mirrorsIn(uris: string): string[] {
  const list = new RegExp(
    String.raw`^'((?!cdrom:)[^']+)/dists/(?:${debianSuites.join("|")})(?:-updates|-backports)?/main/binary-`,
    "gm",
  );
  return [...new Set([...uris.matchAll(list)].map(([, mirror = ""]) => mirror))];
}
