// Links that lead to themselves in the model cache: the router ends at the first that it sees, so it is shown none.
import assert from "node:assert/strict";
import { rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { cacheModel, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";

test("whatever links lead to themselves in the model cache, the router starts and serves the other models", async (t) => {
  const folders = await makeFolders(t);
  const { cacheDir } = folders;
  const cached = (name: string): Promise<string> =>
    cacheModel(folders, `acme/${name}`, "model-Q8_0.gguf", modelBytes(talkingModel(name)));
  const paths = {
    beside: join(dirname(await cached("beside")), "loop.txt"),
    model: await cached("model"),
    ref: join(dirname(await cached("ref")), "..", "..", "refs", "main"),
    repository: join(cacheDir, "models--acme--repository"),
  };
  const later = join(dirname(await cached("good")), "loop.gguf");
  for (const path of [...Object.values(paths), join(cacheDir, "stray")]) {
    await rm(path, { force: true });
    await symlink(path, path);
  }
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  const serve = async (): Promise<void> => {
    for (const name of ["good", "beside", "ref"])
      assert.equal(await gateway.ask(`acme/${name}:Q8_0`), answersOf(name).hello);
  };
  const told = (): string => {
    const { status = "", message = "" } =
      gateway.gateway.status().conditions.find(({ type }) => type === "CacheReadable") ?? {};
    return `${status}: ${message}`;
  };
  await gateway.converged();
  await serve();
  for (const path of Object.values(paths)) assert.ok(told().includes(`${path} (ELOOP)`), told());

  // One that comes while the router runs, and is met by the next one.
  await symlink(later, later);
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.ok(told().includes(later), told());
  const { pid } = gateway.gateway.status().router;
  assert.ok(pid !== null);
  process.kill(pid, "SIGKILL");
  await gateway.until("another router", ({ router }) => router.phase === "ready" && router.pid !== pid);
  await serve();

  for (const path of [...Object.values(paths), later]) await rm(path);
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.match(told(), /^True/);
});
