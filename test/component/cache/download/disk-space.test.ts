// A disk that is full, or fills up while a pull goes on: it stops, says how much is missing, and goes on later.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { statfs } from "node:fs/promises";
import { describe, it } from "node:test";
import { reserveBytes } from "../../../../src/plan/room.ts";
import { withGgufHead } from "../../../support/cache-folder.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { startPulling } from "../../../support/pulling.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const path = "demo-Q8_0.gguf";
const id = "acme/demo-GGUF:Q8_0";
const files = { [path]: withGgufHead(randomBytes(6_000_000)) };

describe("a disk without room", () => {
  it("is noticed while others fill it", async (t) => {
    const { hub, pull, refusal, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.pace(path, 4_000_000);
    let looks = 0;
    // Before the pull there is room; a second later somebody else has it.
    const freeBytes = async () => (looks++ === 0 ? reserveBytes + 6_000_000 : 1_000_000);
    const error = await refusal(id, { isStillWanted: () => true, freeBytes, tuning: { connections: 1 } });
    assert.equal(error.code, "disk_full");
    assert.match(error.message, /2[56]\d MiB are missing/);
    const pulled = await pull(id);
    assert.ok(pulled.resumedBytes > 0);
    assert.equal(pulled.resumedBytes + pulled.downloadedBytes, 6_000_000);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
  });

  it("stops a pull that finds it full, which goes on from there once there is room", async (t) => {
    if (process.platform !== "linux" || process.getuid?.() !== 0)
      return t.skip("a small disk is mounted as root on Linux");
    const { hub, pull, refusal } = await startPulling(t);
    const cacheDir = await scratchFolder(t);
    const mount = (...options: string[]) =>
      execFileSync("mount", ["-t", "tmpfs", "-o", ...options, "tmpfs", cacheDir], { stdio: "ignore" });
    try {
      mount("size=4m");
    } catch {
      return t.skip("this sandbox does not mount");
    }
    cleanUp(t, () => void execFileSync("umount", [cacheDir]));
    hub.addRepo("acme/demo-GGUF", { files });
    // Slow enough for the records to follow, on a busy machine too: on a full disk the last one stands.
    hub.pace(path, 3_000_000);
    const asked = { isStillWanted: () => true, cacheDir, tuning: { recordBytes: 128 * 1024 } };
    const blind = await refusal(id, asked);
    assert.equal(blind.code, "disk_full");
    let looks = 0;
    const freeBytes = async () => {
      const { bavail, bsize } = await statfs(cacheDir);
      return looks++ === 0 ? undefined : bavail * bsize;
    };
    assert.match((await refusal(id, { ...asked, freeBytes })).message, /MiB are missing/);
    mount("remount,size=16m");
    const pulled = await pull(id, asked);
    assert.ok(pulled.resumedBytes > 1_000_000, String(pulled.resumedBytes));
    assert.equal(pulled.resumedBytes + pulled.downloadedBytes, 6_000_000);
  });
});
