// Which mirror is read from the formats that apt's source lists have, and that nothing unsigned is taken from it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { aptConfiguration } from "../../../../src/engines/install/apt.ts";
import { debianMirrors } from "../../../../src/engines/install/apt-sources.ts";
import { scratchFolder } from "../../../support/scratch.ts";

test("deb822: the main archive is taken, the security archive and other vendors are not", () => {
  const text = `# a comment
Types: deb deb-src
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

Types: deb
URIs: http://vendor.test/apt
Suites: nodistro
Components: main
`;
  assert.deepEqual(debianMirrors([{ name: "debian.sources", text }]), [
    { uri: "http://mirror.test/debian", signedBy: ["/usr/share/keyrings/debian-archive-keyring.gpg"] },
    { uri: "http://second.test/debian", signedBy: ["/usr/share/keyrings/debian-archive-keyring.gpg"] },
  ]);
});

test("deb822: a key written out in the list is not taken for a path", () => {
  const text = `Types: deb
URIs: http://mirror.test/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY/abc/def
 -----END PGP PUBLIC KEY BLOCK-----
`;
  assert.deepEqual(debianMirrors([{ name: "x.sources", text }]), [{ uri: "http://mirror.test/debian", signedBy: [] }]);
});

test("one line each: options, comments, duplicates, discs", () => {
  const text = `
deb cdrom:[Debian GNU/Linux 12]/ bookworm main
# deb http://commented.test/debian bookworm main
deb [ arch=amd64 signed-by=/a.gpg,/b.gpg ] http://mirror.test/debian bookworm main non-free # note
deb http://mirror.test/debian bookworm-updates main
deb-src http://source.test/debian bookworm main
deb http://security.test/debian-security bookworm-security main
deb http://old.test/debian buster/updates main
deb http://other.test/ubuntu noble main
`;
  assert.deepEqual(debianMirrors([{ name: "sources.list", text }]), [
    { uri: "http://mirror.test/debian", signedBy: ["/a.gpg", "/b.gpg"] },
  ]);
});

const hasApt = { skip: existsSync("/usr/bin/apt-get") ? false : "needs apt-get" };

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
