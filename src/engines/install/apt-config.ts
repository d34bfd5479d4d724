// The configuration of a private apt: options, folders, source line; and the mirrors in the output of the system's own apt.
import { existsSync } from "node:fs";
import path from "node:path";

/** The Debian release that carries the engines; Debian 12 and 13 do not. */
export const debianSuite = "forky";
const debianSuites =
  "buster bullseye bookworm trixie forky duke sid oldoldstable oldstable stable testing unstable".split(" ");
/** The name of the keyring differs between releases. */
const archiveKeyrings = [
  "/usr/share/keyrings/debian-archive-keyring.pgp",
  "/usr/share/keyrings/debian-archive-keyring.gpg",
];

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
export function pathOptions(dir: string): string[] {
  const settings: Record<string, string> = {
    "Dir::State": dir,
    "Dir::State::status": path.join(dir, "status"),
    "Dir::State::lists": path.join(dir, "lists"),
    "Dir::Cache": path.join(dir, "cache"),
    "Dir::Cache::archives": path.join(dir, "cache", "archives"),
    "Dir::Etc::sourcelist": path.join(dir, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferences": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
  };
  return Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
}

export function sourceLine(mirror: string, architecture: string): string {
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
