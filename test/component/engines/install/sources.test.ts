// Which mirror is read from the system's apt, and that nothing unsigned is taken from it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { aptConfiguration, mirrorsIn } from "../../../../src/engines/install/apt.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const hasApt = { skip: existsSync("/usr/bin/apt-get") ? false : "needs apt-get" };

test(
  "the main archive is taken in either format, the security archive, other vendors and discs are not",
  hasApt,
  async (t) => {
    const dir = await scratchFolder(t);
    await mkdir(join(dir, "parts"));
    await writeFile(
      join(dir, "parts", "debian.sources"),
      `Types: deb deb-src
URIs: http://mirror.test/debian
 http://second.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://disabled.test/debian
Suites: trixie
Components: main
`,
    );
    await writeFile(
      join(dir, "sources.list"),
      `deb cdrom:[Debian GNU/Linux 12]/ bookworm main
deb [ arch=amd64 signed-by=/a.gpg,/b.gpg ] http://one.test/debian trixie main non-free # note
deb http://mirror.test/debian bookworm-backports main
deb http://vendor.test/linux/debian bookworm stable
deb http://other.test/ubuntu noble main
`,
    );
    const options = { "Dir::Etc::sourcelist": join(dir, "sources.list"), "Dir::Etc::sourceparts": join(dir, "parts") };
    const args = Object.entries(options).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
    const { stdout } = spawnSync("apt-get", [...args, "update", "--print-uris"], { encoding: "utf8" });
    assert.deepEqual(mirrorsIn(stdout).toSorted(), [
      "http://mirror.test/debian",
      "http://one.test/debian",
      "http://second.test/debian",
    ]);
  },
);

test("an unsigned repository is refused on a system that accepts them", hasApt, async (t) => {
  const dir = await scratchFolder(t);
  for (const folder of ["repo", "lists/partial", "cache/archives/partial"])
    await mkdir(join(dir, folder), { recursive: true });
  const allowed = [
    "APT::Get::AllowUnauthenticated",
    "Acquire::AllowInsecureRepositories",
    "Acquire::AllowWeakRepositories",
    "Acquire::AllowDowngradeToInsecureRepositories",
  ];
  const files = {
    status: "",
    "repo/Packages": "",
    "sources.list": `deb file:${dir}/repo ./\n`,
    "system.conf": allowed.map((key) => `${key} "true";\n`).join(""),
    "empty.conf": "",
    "ours.conf": aptConfiguration("amd64"),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const options = {
    "Dir::State": dir,
    "Dir::State::status": join(dir, "status"),
    "Dir::Cache": join(dir, "cache"),
    "Dir::Etc::sourcelist": join(dir, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "APT::Sandbox::User": "root",
  };
  const update = (configuration: string): { readonly status: number | null; readonly stderr: string } =>
    spawnSync(
      "apt-get",
      ["-c", join(dir, configuration), ...Object.entries(options).flatMap(([k, v]) => ["-o", `${k}=${v}`]), "update"],
      { env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8", APT_CONFIG: join(dir, "system.conf") }, encoding: "utf8" },
    );
  assert.equal(update("empty.conf").status, 0, "the system's own apt takes it");
  const refused = update("ours.conf");
  assert.equal(refused.status, 100);
  assert.match(refused.stderr, /does not have a Release file/);
});
