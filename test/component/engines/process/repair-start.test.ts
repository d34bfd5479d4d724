// A start that fails: whether the files were to blame.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { GatewayError, toGatewayError } from "../../../../src/core/errors.ts";
import { startOrMend } from "../../../../src/engines/process/repair-start.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const good = "a voice as it was downloaded";
const digest = createHash("sha256").update(good).digest("hex");

/** What the start ended with, and whether the file's name is still there. */
async function outcome(t: TestContext, content: string): Promise<object> {
  const folder = await scratchFolder(t);
  await mkdir(join(folder, "blobs"));
  const blob = join(folder, "blobs", digest);
  const link = join(folder, "voice.onnx");
  await writeFile(blob, content);
  await symlink(blob, link);
  const { signal } = new AbortController();
  const error = await startOrMend({ what: "it", links: [link], signal, warn: () => undefined }, async () => {
    throw new GatewayError("engine_failed", "the engine ended while starting");
  }).catch(toGatewayError);
  return { code: error?.code, isThere: existsSync(link) };
}

test("a file that is damaged goes, and the start is to be tried again", async (t) => {
  assert.deepEqual(await outcome(t, "something else"), { code: "cancelled", isThere: false });
});

test("a file that is as it should be stays, and the engine's failure is said", async (t) => {
  assert.deepEqual(await outcome(t, good), { code: "engine_failed", isThere: true });
});
