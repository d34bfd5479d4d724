// A cache on a disk that goes away: what is left is an empty mount point, and that is no wish to pull everything again.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createCacheScanner } from "../../src/observe/cache.ts";
import { cleanUp } from "../support/clean-up.ts";
import { cacheTalker } from "../support/gateway.ts";
import { scratchFolder } from "../support/scratch.ts";

const mayMount = process.platform === "linux" && process.getuid?.() === 0;

test("an unmounted cache is unknown, and known again once it is back", {
  skip: mayMount ? false : "mounting needs root on Linux",
}, async (t) => {
  const cacheDir = join(await scratchFolder(t), "hub");
  await mkdir(cacheDir);
  const mount = (): unknown => execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", cacheDir]);
  let mounted = false;
  try {
    mount();
    mounted = true;
  } catch {
    t.skip("this sandbox does not mount");
    return;
  }
  cleanUp(t, () => {
    if (mounted) execFileSync("umount", [cacheDir]);
  });
  await cacheTalker({ cacheDir }, "acme/a");
  const scanner = createCacheScanner(cacheDir);
  assert.equal((await scanner.scan()).state, "known");
  execFileSync("umount", [cacheDir]);
  mounted = false;
  const gone = await scanner.scan();
  assert.equal(gone.state, "unknown");
  assert.match(gone.state === "unknown" ? gone.why : "", /unmounted/);
  mount();
  mounted = true;
  await cacheTalker({ cacheDir }, "acme/a");
  assert.equal((await scanner.scan()).state, "known");
});
