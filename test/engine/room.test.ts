// A pull for which the disk has too little room, on a real small disk: refused at once, held in the plan, and started when
// there is room.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { patchWith, postWith } from "../support/requests.ts";

test("a pull without room is held with its size, others go on, and it starts by itself once there is room", {
  skip: process.platform === "linux" && process.getuid?.() === 0 ? false : "a small disk is mounted as root on Linux",
}, async (t) => {
  const hub = await startLoopbackHub(t);
  const small = modelBytes(talkingModel("small"));
  const big = Buffer.concat([modelBytes(talkingModel("big")), Buffer.alloc(8_000_000)]);
  hub.addRepo("acme/small-GGUF", { files: { "small-Q8_0.gguf": small } });
  hub.addRepo("acme/big-GGUF", { files: { "big-Q8_0.gguf": big } });
  const folders = await makeFolders(t);
  const mount = (options: string): void =>
    void execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folders.cacheDir], { stdio: "ignore" });
  try {
    // The gateway leaves 256 MiB free.
    mount("size=260m");
  } catch {
    t.skip("this sandbox does not mount");
    return;
  }
  cleanUp(t, () => void execFileSync("umount", [folders.cacheDir]));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\nmodels: []\n",
    environment: { HF_ENDPOINT: hub.endpoint },
    flags: ["--resync", "0.3"],
  });
  await gateway.converged();
  const asked = (): number => hub.requests.filter(({ path }) => path.includes("/tree/")).length;

  // Somebody who waits for it is told at once, and the document wants it no more.
  const refused = await gateway.json("/alpha/api/pull", postWith({ model: "acme/big-GGUF:Q8_0", stream: false }));
  assert.equal(refused.status, 507, JSON.stringify(refused.body));
  assert.match(String(refused.body["error"]), /needs 9 MiB .* are missing/);
  assert.equal(asked(), 1, "one try");
  assert.equal(JSON.stringify((await gateway.json("/api/desired")).body["document"]).includes("big"), false);

  // The document may name it all the same.
  const models = { "acme/big-GGUF:Q8_0": {}, "acme/small-GGUF:Q8_0": {} };
  await gateway.json("/api/desired", patchWith({ models }));
  const status = await gateway.until("the small one is here", ({ models: found }) =>
    found.some(({ id, conditions }) => id.includes("small") && conditions[0]?.status === "True"),
  );
  const words = (
    type: string,
    of: { conditions: readonly { type: string; status: string; reason: string }[] },
  ): string =>
    of.conditions
      .filter((each) => each.type === type)
      .map(({ status: is, reason }) => `${is} ${reason}`)
      .join();
  const waiting = status.models.find(({ id }) => id.includes("big"));
  assert.ok(waiting);
  assert.deepEqual([words("Present", waiting), words("DiskRoom", status)], ["False DiskFull", "False DiskFull"]);
  assert.equal(asked(), 3, "the big one was tried once more, for the new document");

  mount("remount,size=300m");
  await gateway.converged();
  assert.ok((await readdir(folders.cacheDir)).includes("models--acme--big-GGUF"));
  const here = gateway.gateway.status().models.find(({ id }) => id.includes("big"));
  assert.equal(here && words("Present", here), "True Cached");
});
