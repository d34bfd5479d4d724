// The files that the document names beside a model: which of them the engine may be given, and that a change is seen.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { promisify } from "node:util";
import { readDocumentFiles, readEngineFiles } from "../../../src/observe/document-files.ts";
import type { DocumentFile, Observed } from "../../../src/plan/observed.ts";
import { modelHead } from "../../support/cache-folder.ts";
import { scratchFolder } from "../../support/scratch.ts";
import { desiredFrom } from "../../unit/plan/world.ts";

interface Looking {
  /** The document's folder, and one beside it. */
  readonly folder: string;
  readonly outside: string;
  look(name: string): Promise<DocumentFile | undefined>;
}

async function looking(t: TestContext): Promise<Looking> {
  const root = await scratchFolder(t);
  const [folder, outside] = [join(root, "doc"), join(root, "outside")];
  await mkdir(join(folder, "sub"), { recursive: true });
  await mkdir(outside);
  await writeFile(join(outside, "secret"), "secret");
  const look = async (name: string): Promise<DocumentFile | undefined> => {
    const document = desiredFrom({ models: [{ id: "acme/a:Q8_0", chatTemplate: name }] });
    return (await readDocumentFiles(join(folder, "gateway.yaml"), document)).documentFiles.get(name);
  };
  return { folder, outside, look };
}

describe("a file that the document names", () => {
  it("is taken in the folder and below, by relative and absolute paths, through links, with the path that they lead to", async (t) => {
    const { folder, look } = await looking(t);
    await writeFile(join(folder, "a.jinja"), "{{ x }}");
    await writeFile(join(folder, "sub", "..b.gguf"), modelHead("b"));
    await symlink("sub/..b.gguf", join(folder, "link"));
    for (const [name, path, isGguf] of [
      ["./a.jinja", "a.jinja", false],
      ["sub/../a.jinja", "a.jinja", false],
      [join(folder, "a.jinja"), "a.jinja", false],
      ["sub/..b.gguf", "sub/..b.gguf", true],
      ["link", "sub/..b.gguf", true],
    ] as const) {
      const found = await look(name);
      assert.ok(found?.state === "fit", name);
      assert.deepEqual([found.path, found.isGguf], [join(folder, path), isGguf]);
      assert.match(found.identity, /^[a-z0-9-]+$/);
    }
  });

  it("is refused outside of it, by any way, where it is no file, and where it is not there", async (t) => {
    const { folder, outside, look } = await looking(t);
    await symlink(join(outside, "secret"), join(folder, "to-secret"));
    await symlink(outside, join(folder, "to-outside"));
    await symlink("loop", join(folder, "loop"));
    await promisify(execFile)("mkfifo", [join(folder, "pipe")]);
    for (const [name, why] of [
      ["../outside/secret", "lies outside the document's folder"],
      [join(outside, "secret"), "lies outside the document's folder"],
      ["to-secret", "lies outside the document's folder"],
      ["to-outside/secret", "lies outside the document's folder"],
      ["/dev/zero", "lies outside the document's folder"],
      ["..", "lies outside the document's folder"],
      [".", "is not a regular file"],
      ["sub", "is not a regular file"],
      ["pipe", "is not a regular file"],
      ["none", "does not exist"],
      ["loop", "cannot be read (ELOOP)"],
      ["none\u0000", "cannot be read (ERR_INVALID_ARG_VALUE)"],
    ] as const)
      assert.deepEqual(await look(name), { state: "unfit", why: `${name} ${why}` });
  });

  it("that is away while it is replaced does not count as gone; one that was never there is not waited for", async (t) => {
    const { folder } = await looking(t);
    const path = join(folder, "a.jinja");
    const { models } = desiredFrom({ models: [{ id: "acme/a:Q8_0", chatTemplate: "a.jinja" }] });
    let waits = 0;
    const look = (before?: Observed["documentFiles"]): Promise<Observed["documentFiles"]> =>
      readEngineFiles(join(folder, "gateway.yaml"), models, before, () => {
        waits++;
        return writeFile(path, "{{ x }}");
      });
    const absent = await look();
    assert.equal((await look(absent)).get("a.jinja")?.state, "unfit");
    assert.equal(waits, 0);
    await writeFile(path, "{{ y }}");
    const there = await look(absent);
    await rm(path);
    assert.equal((await look(there)).get("a.jinja")?.state, "fit");
    assert.equal(waits, 1);
  });

  it("has another identity with another content, also where it was put in its place", async (t) => {
    const { folder, look } = await looking(t);
    const path = join(folder, "a.jinja");
    const identity = async (): Promise<string> => {
      const found = await look("a.jinja");
      return found?.state === "fit" ? found.identity : "";
    };
    await writeFile(path, "one");
    const first = await identity();
    assert.equal(await identity(), first);
    await writeFile(path, "longer");
    const second = await identity();
    await writeFile(`${path}.new`, "shorter");
    await rename(`${path}.new`, path);
    assert.equal(new Set([first, second, await identity()]).size, 3);
  });
});
