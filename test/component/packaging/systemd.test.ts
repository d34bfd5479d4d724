// The unit: systemd's own checker finds nothing wrong with it, and how exposed it is. Where there is no systemd, its form is checked.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { unitProblem } from "../../../src/cli/doctor/unit-file.ts";
import { findOnPath } from "../../../src/engines/install/locate.ts";
import type { Setup } from "../../../src/packaging/setup.ts";
import { systemdUnit } from "../../../src/packaging/systemd.ts";
import { scratchFolder } from "../../support/scratch.ts";
import { fullSetup, setupWith } from "../../support/setup.ts";

const run = promisify(execFile);
/** Of 10; what is left is what a server of models needs: the network, GPUs, a compiler. */
const mostExposed = 2.2;

const setups: Readonly<Record<string, Setup>> = {
  "of a user": setupWith({
    licenseKeyFile: "/etc/keys/license-key",
    variables: { HF_ENDPOINT: "https://hub.example" },
  }),
  "of an account of its own": setupWith({
    account: null,
    gpuGroups: ["video", "render"],
    stateDir: "/var/lib/model-gateway",
    cacheDir: "/var/lib/model-gateway/hub",
    configPath: "/var/lib/model-gateway/gateway.yaml",
  }),
  "with every setting": fullSetup,
  "with a port of the system": setupWith({ port: 80 }),
};

for (const [name, setup] of Object.entries(setups))
  test(`the unit ${name}`, async (t) => {
    const text = systemdUnit(setup);
    assert.equal(unitProblem({ path: "", text }, setup.stopGraceMs), null);
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    assert.deepEqual(
      lines.filter((line) => !/^(?:\[(?:Unit|Service|Install)\]|[A-Z][A-Za-z]+=.*)$/.test(line)),
      [],
    );
    const analyze = await findOnPath("systemd-analyze", process.env["PATH"] ?? "");
    if (analyze === null) return t.diagnostic("no systemd-analyze here: only the unit's form was checked");
    const path = join(await scratchFolder(t), "model-gateway.service");
    await writeFile(path, text);
    const { stdout, stderr } = await run(analyze, ["verify", path]);
    assert.deepEqual([stdout, stderr], ["", ""]);
    const score = await run(analyze, ["security", "--offline=true", "--no-pager", path]);
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(score.stdout) ?? [];
    assert.ok(Number(exposure) <= mostExposed, `${exposure}`);
  });

test("a unit's command is what systemd makes of it", () => {
  const [, command = ""] = /^ExecStart=(.*)$/m.exec(systemdUnit(fullSetup)) ?? [];
  const words = [...command.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain = ""]) =>
    (quoted ?? plain).replaceAll(/\\(.)/g, "$1").replaceAll("%%", "%").replaceAll("$$", "$"),
  );
  assert.ok(words.includes(`--state=${fullSetup.stateDir}`), command);
  assert.ok(words.includes("--keep-alive=5m"));
});
