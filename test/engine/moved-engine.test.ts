// A state folder that was copied, and one that was moved: the engine in it runs where it is, without a download.
import assert from "node:assert/strict";
import { cp, mkdir, realpath, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "node:test";
import { readInstalled } from "../../src/engines/install/folder.ts";
import { startCommand } from "../support/command.ts";
import { enginesDir } from "../support/engine.ts";
import { cacheTalker, chatWith, type GatewayFolders, makeFolders } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";

test("an engine that was copied or moved with its state folder answers", async (t) => {
  const installed = (await readInstalled(enginesDir)).find(({ manifest }) => manifest.name === "llama");
  if (installed?.manifest.how !== "debian") return t.skip("the engine here has no path in it");
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: ["${model}"]\n`);
  await mkdir(join(folders.stateDir, "engines"));
  const copy = join("engines", basename(installed.dir));
  await cp(installed.dir, join(folders.stateDir, copy), { recursive: true, verbatimSymlinks: true });

  async function answers(place: GatewayFolders): Promise<void> {
    const alone = { LLAMA_SERVER: "", GATEWAY_INSTALL_ENGINE: "false" };
    const serve = await startCommand(t, place, ["serve"], alone);
    await serve.output(/curl/);
    const [, port = ""] = await serve.output(/http:\/\/127\.0\.0\.1:(\d+)/);
    const status = (await (await fetch(`http://127.0.0.1:${port}/status`)).json()) as { router: { binary: string } };
    assert.ok(status.router.binary.startsWith(join(await realpath(place.stateDir), copy)), status.router.binary);
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, chatWith(model));
    const body = (await answer.json()) as { choices: { message: { content: string } }[] };
    assert.equal(body.choices[0]?.message.content, answersOf("acme/alpha").hello);
    serve.process.kill("SIGTERM");
    await serve.exited;
  }

  await answers(folders);
  const stateDir = join(folders.root, "moved");
  await rename(folders.stateDir, stateDir);
  await answers({ ...folders, stateDir });
});
