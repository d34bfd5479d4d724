// Which mirror is read from the formats that apt's source lists have.

import assert from "node:assert/strict";
import { test } from "node:test";
import { debianMirrors } from "../../src/engines/install/apt-sources.ts";

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
