// Every file of the state folder damaged in every way before a start: it starts, says so, and the document is what
// gateway.yaml says; or, where that would let strangers in, it says why it does not start.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runCommand, startCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";

/** Each that a gateway can live without for a while. */
const files = ["desired.json", "last-applied.json", "inventory.json", "last-used.json", "gateway.lock"] as const;
const preset = "router.preset.ini";

const damages: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  truncated: (path) => truncate(path, 7),
  empty: (path) => truncate(path, 0),
  "binary garbage": (path) => writeFile(path, randomBytes(4096)),
  "NULs, as after a power cut": (path) => writeFile(path, Buffer.alloc(512)),
  "JSON of another shape": (path) => writeFile(path, `{"models": 3, "tree": [], "generation": "x"}`),
  "a link to nothing": async (path) => {
    await rm(path);
    await symlink("/nowhere/at/all", path);
  },
};

test("whatever the state files hold, the next start serves, and nothing of them is lost", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 1024 }]\n`;
  for (const [what, damage] of Object.entries(damages)) {
    await t.test(what, async (each) => {
      for (const name of files) await writeFile(join(folders.stateDir, name), "something of an earlier gateway");
      await writeFile(join(folders.stateDir, preset), "; mine\n[*]\nparallel = 1\n");
      // Nothing makes a lock a link; a gateway that finds one does not start, and names it.
      const damaged = what === "a link to nothing" ? files.filter((name) => name !== "gateway.lock") : files;
      for (const name of [...damaged, preset]) await damage(join(folders.stateDir, name));
      const gateway = await startTestGateway(each, { folders, yaml });
      await gateway.converged();
      assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
      assert.match(await readFile(join(folders.stateDir, preset), "utf8"), /ctx-size = 1024/);
      const aside = (await readdir(folders.stateDir)).filter((name) => name.includes(".corrupt-"));
      assert.equal(aside.length, 4, aside.join());
      const told = gateway.gateway.status().conditions.find(({ type }) => type === "StateWritable");
      assert.equal(told?.reason, "FilesSetAside");
      for (const name of aside) assert.ok(told?.message.includes(name));
      await gateway.gateway.stop();
      await rm(folders.stateDir, { recursive: true });
      await mkdir(folders.stateDir);
    });
  }
});

test("a folder in the place of a state file is set aside; one in the place of the preset file is told, and is no matter once it has gone", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  for (const name of [...files.filter((file) => file !== "gateway.lock"), preset])
    await mkdir(join(folders.stateDir, name, "inside"), { recursive: true });
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  const { conditions } = await gateway.until("told", ({ conditions }) =>
    conditions.some(({ reason }) => reason === "PresetUnreadable"),
  );
  assert.match(conditions.find(({ type }) => type === "RouterReady")?.message ?? "", /router\.preset\.ini .*EISDIR/);
  await rm(join(folders.stateDir, preset), { recursive: true });
  await gateway.converged();
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
});

test("license keys that cannot be read let nobody in: it does not start, and says which file", async (t) => {
  const folders = await makeFolders(t);
  await folders.writeConfig("version: 1\n");
  const keys = join(folders.stateDir, "license-keys.json");
  const aFolder = async (path: string): Promise<unknown> => {
    await rm(path);
    return mkdir(path);
  };
  for (const [what, damage] of Object.entries({ ...damages, "a folder": aFolder })) {
    await rm(keys, { recursive: true, force: true });
    await writeFile(keys, "something of an earlier gateway");
    await damage(keys);
    const { code, stderr } = await runCommand(t, folders, ["serve"]);
    assert.equal(code, 1, what);
    assert.match(stderr, /license-keys\.json/, what);
  }
});

test("a state folder that cannot be made ends the start at once, with the way out", {
  skip: process.platform !== "linux",
}, async (t) => {
  const folders = await makeFolders(t);
  const serve = await startCommand(t, folders, ["serve", "--state", "/proc/none"]);
  const { code, stderr } = await serve.exited;
  assert.equal(code, 1);
  assert.match(stderr, /the state folder \/proc\/none cannot be used .*--state/);
});
