// Main memory, read from the files of made-up systems: a plain machine, and cgroups of both versions.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { createHostReader } from "../../../src/memory/host.ts";
import { scratchFolder } from "../../support/scratch.ts";

const mebibyte = 2 ** 20;
const meminfo = "MemTotal:        8388608 kB\nMemFree:          102400 kB\nMemAvailable:    6291456 kB\n";

async function systemWith(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const root = await scratchFolder(t);
  for (const [path, text] of Object.entries({ "proc/meminfo": meminfo, ...files })) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
}

test("a machine without cgroups has what the system says is available", async (t) => {
  const root = await systemWith(t, {
    "proc/7/status": "Name:\tllama-server\nRssAnon:\t  2048 kB\nRssFile:\t 9000 kB\nRssShmem:\t  1024 kB\n",
    "proc/9/status": "Name:\tllama-server\nState:\tZ (zombie)\nThreads:\t2\n",
    "proc/vmstat": "nr_free_pages 7\noom_kill 3\n",
  });
  const reader = createHostReader(root);
  assert.deepEqual(reader.memory(), { total: 8192 * mebibyte, free: 6144 * mebibyte });
  assert.deepEqual(
    [reader.held(7), reader.held(8), reader.held(9), reader.files(7), reader.files(8), reader.kills()],
    [3 * mebibyte, null, null, 9000 * 1024, 0, 3],
    "pages of files are not held, and one that ends does not say",
  );
});

test("of cgroups each one above counts, without the page cache; one without a limit does not", async (t) => {
  const root = await systemWith(t, {
    "proc/self/cgroup": "0::/pod/container\n",
    "sys/fs/cgroup/pod/container/memory.max": "max\n",
    "sys/fs/cgroup/pod/container/memory.current": String(900 * mebibyte),
    "sys/fs/cgroup/pod/memory.max": String(1000 * mebibyte),
    "sys/fs/cgroup/pod/memory.current": String(900 * mebibyte),
    "sys/fs/cgroup/pod/memory.stat": `anon 7\nactive_file ${100 * mebibyte}\ninactive_file ${300 * mebibyte}\n`,
  });
  const reader = createHostReader(root);
  assert.deepEqual(reader.memory(), { total: 1000 * mebibyte, free: 500 * mebibyte });
  await writeFile(join(root, "sys/fs/cgroup/pod/memory.max"), String(600 * mebibyte));
  assert.deepEqual(reader.memory(), { total: 600 * mebibyte, free: 100 * mebibyte }, "a limit may change");
});

test("a container of the first version sees its own cgroup at the top", async (t) => {
  const top = "sys/fs/cgroup/memory";
  const root = await systemWith(t, {
    "proc/self/cgroup": "9:cpu,cpuacct:/docker/f00\n5:memory:/docker/f00\n0::/\n",
    [`${top}/memory.limit_in_bytes`]: String(2048 * mebibyte),
    [`${top}/memory.usage_in_bytes`]: String(1024 * mebibyte),
    [`${top}/memory.stat`]: `active_file 9\ntotal_active_file ${24 * mebibyte}\ntotal_inactive_file 0\n`,
  });
  assert.deepEqual(createHostReader(root).memory(), { total: 2048 * mebibyte, free: 1048 * mebibyte });
});
