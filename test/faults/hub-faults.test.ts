// Pulls that are killed at any moment, over lines and from servers that misbehave: what is visible is always right, what
// was there is not fetched again, and the end is as if nothing had happened. Seeded: a failure names its seed.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { coveredBytes, type Extents } from "../../src/cache/download/extents.ts";
import { cleanPartials } from "../../src/cache/download/leftovers.ts";
import { kept as keptOf } from "../../src/cache/download/partial-file.ts";
import { pullModel } from "../../src/cache/download/pull.ts";
import { blobPath, partialPath } from "../../src/cache/layout/layout.ts";
import { parseModelId } from "../../src/core/ids.ts";
import { createHubClient, type HubClient } from "../../src/hub/client.ts";
import { withGgufHead } from "../support/cache-folder.ts";
import { cleanUp } from "../support/clean-up.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import type { PullOrder } from "../support/pull-child.ts";
import { scratchFolder } from "../support/scratch.ts";
import { between, type Random, randomFrom } from "../support/seeded.ts";

const token = "hf_abcdefghijklmnopqrstuvwxyz0123456789";
const runs = Number(process.env["KILLS"] ?? 80);
const abreast = 3;
const gather = 32 * 1024;
const tuning = {
  connections: 3,
  pieceBytes: 192 * 1024,
  leastBytes: 16 * 1024,
  lookMs: 5,
  recordBytes: 64 * 1024,
  gatherBytes: gather,
  retryMs: 1,
  tries: 12,
};

/** What goes wrong in a run besides the kills; answers whether bytes that were there may be wrong, and fetched again. */
type Mood = (hub: LoopbackHub, path: string, random: Random) => boolean;
const moods: readonly Mood[] = [
  () => false,
  (hub, path, random) => {
    hub.dropAfter(path, between(random, 66_000, 200_000), 4);
    return false;
  },
  (hub, path, random) => {
    const status = random() < 0.5 ? 503 : 403;
    hub.failNext({ status, times: 3, match: (seen) => seen.origin === "storage" && seen.path.includes(path) });
    return false;
  },
  (hub, path) => {
    hub.lieAboutRanges(path, "shifted");
    return true;
  },
  (hub, path) => {
    hub.lieAboutRanges(path, "whole");
    return true;
  },
  (hub, path) => {
    hub.corrupt(path, 1);
    return true;
  },
];

interface World {
  readonly hub: LoopbackHub;
  readonly client: HubClient;
  readonly folder: string;
  readonly pool: Buffer;
}

/** Answers with the bytes that were kept when the pull had been killed. */
async function faultyRun({ hub, client, folder, pool }: World, seed: number): Promise<number> {
  const random = randomFrom(seed);
  const repo = `acme/run${seed}-GGUF`;
  const shards = random() < 0.3 ? 2 : 1;
  const files: Record<string, Buffer> = {};
  const cut = (from: number, to: number): Buffer => withGgufHead(Buffer.from(pool.subarray(from, to)));
  for (let n = 1; n <= shards; n++) {
    const start = between(random, 0, 1_000_000);
    const name = shards === 1 ? `run${seed}-Q8_0.gguf` : `run${seed}-Q8_0-0000${n}-of-0000${shards}.gguf`;
    files[name] = cut(start, start + between(random, 400_000, 2_000_000) / shards);
  }
  if (random() < 0.3) files[`mmproj-run${seed}.gguf`] = cut(seed, seed + 90_000);
  hub.addRepo(repo, { files, gated: true });
  const [target = ""] = Object.keys(files);
  for (const path of Object.keys(files)) hub.pace(path, between(random, 4, 16) * 1_000_000);
  const mayFetchAgain = moods[seed % moods.length]?.(hub, target, random) ?? false;
  const cacheDir = join(folder, String(seed));
  await mkdir(cacheDir);
  const order = { endpoint: hub.endpoint, token, cacheDir, gateway: "mine", id: `${repo}:Q8_0`, tuning };
  const kills = random() < 0.15 ? 2 : 1;
  const kept = new Map<string, Extents>();
  // A slow disk may have no record of any by then: a third of the kills waits for one, so that something is kept.
  const hasRecord = async (): Promise<boolean> =>
    seed % 3 > 0 || coveredBytes(await keptExtents(cacheDir, repo, files[target] ?? Buffer.alloc(0))) > 0;
  try {
    for (let kill = 0; kill < kills; kill++) {
      // From before the first byte to after the last, where the check, the rename, the links and the ref come.
      const sent = hub.sentBytes(target) + random() ** 0.7 * 1.3 * (files[target]?.length ?? 0);
      await pullAndKill(
        order,
        between(random, 0, 25),
        async () => hub.sentBytes(target) >= sent && (await hasRecord()),
      );
      await checkVisible(cacheDir, repo, files);
    }
    // A kill costs what has no record: how much that is depends on how long the disk takes to sync.
    for (const [path, bytes] of Object.entries(files)) kept.set(path, await keptExtents(cacheDir, repo, bytes));
    const asked = hub.requests.length;
    // As the gateway does when it starts again.
    await cleanPartials(cacheDir, () => [order.id], order.gateway);
    const id = parseModelId(order.id);
    assert.ok(id);
    const signal = new AbortController().signal;
    const freeBytes = () => Promise.resolve(undefined);
    await pullModel({ ...order, client, id, signal, freeBytes, onProgress: () => undefined });
    assert.equal(await checkVisible(cacheDir, repo, files), Object.keys(files).length, "all files are shown");
    const names = await readdir(cacheDir, { recursive: true });
    assert.deepEqual(
      names.filter((name) => name.includes("incomplete")),
      [],
    );
    for (const [path, bytes] of Object.entries(files)) {
      if (mayFetchAgain && path === target) continue;
      const there = kept.get(path) ?? [];
      for (const { range } of hub.requests.slice(asked).filter((seen) => isOfFile(seen, path))) {
        const [, from = "0", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
        const last = to === "" ? bytes.length - 1 : Number(to);
        const again = there.filter(([start, end]) => start <= last && Number(from) < end);
        assert.deepEqual(again, [], `${path}: ${range} was asked for again, after ${kills} kills`);
      }
    }
    return [...kept.values()].reduce((sum, extents) => sum + coveredBytes(extents), 0);
  } finally {
    hub.removeRepo(repo);
    await rm(cacheDir, { recursive: true, force: true });
  }
}

function isOfFile(seen: { readonly origin: string; readonly path: string }, path: string): boolean {
  return seen.origin === "storage" && seen.path.includes(path);
}

/** What of a file the next pull need not fetch. */
async function keptExtents(cacheDir: string, repo: string, bytes: Buffer): Promise<Extents> {
  const digest = createHash("sha256").update(bytes).digest("hex");
  const stored = await stat(blobPath(cacheDir, repo, digest)).catch(() => undefined);
  if (stored) return [[0, stored.size]];
  return (await keptOf(partialPath(cacheDir, repo, digest), bytes.length)).written;
}

/** Kills it so long after it has enough, or has ended: not every run gets there. */
async function pullAndKill(order: PullOrder, afterMs: number, hasEnough: () => Promise<boolean>): Promise<void> {
  const script = fileURLToPath(new URL("../support/pull-child.js", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(order)], { stdio: ["pipe", "pipe", "inherit"] });
  const exit = once(child, "exit");
  try {
    const said = await wordOf(child);
    assert.equal(said, "ready");
    child.stdin.write("go\n");
    while (child.exitCode === null && !(await hasEnough())) await delay(2);
    await Promise.race([delay(afterMs), exit]);
  } finally {
    child.kill("SIGKILL");
    await exit;
  }
}

async function wordOf(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout);
  const [text]: unknown[] = await once(child.stdout.setEncoding("utf8"), "data");
  return String(text).trim();
}

/** Whatever has its final name is whole and right, and no file of ours holds the token. Answers with how many are shown. */
async function checkVisible(cacheDir: string, repo: string, files: Record<string, Buffer>): Promise<number> {
  const root = join(cacheDir, `models--${repo.replace("/", "--")}`);
  for (const name of await readdir(join(root, "blobs")).catch(() => [])) {
    const bytes = await readFile(join(root, "blobs", name));
    if (name.includes(".incomplete")) assert.equal(bytes.includes(token), false);
    else assert.equal(createHash("sha256").update(bytes).digest("hex"), name);
  }
  let shown = 0;
  const snapshots = join(root, "snapshots");
  for (const commit of await readdir(snapshots).catch(() => [])) {
    for (const path of await readdir(join(snapshots, commit))) {
      assert.deepEqual(await readFile(join(snapshots, commit, path)), files[path]);
      shown++;
    }
  }
  const ref = await stat(join(root, "refs", "main")).catch(() => undefined);
  if (ref) assert.equal(shown, Object.keys(files).length, "a ref stands for all files");
  return shown;
}

describe("pulls that are killed at any moment", () => {
  it(`end as if nothing had happened, ${runs} times`, async (t) => {
    const hub = await startLoopbackHub(t, { tokens: [token] });
    const client = createHubClient({ endpoint: hub.endpoint, token });
    cleanUp(t, () => client.close());
    const folder = await scratchFolder(t);
    const random = randomFrom(1);
    const pool = Buffer.from(Uint32Array.from({ length: 900_000 }, () => random() * 4_294_967_296).buffer);
    let seed = 0;
    let allKept = 0;
    const lane = async (): Promise<void> => {
      while (seed < runs) {
        const mine = seed++;
        try {
          allKept += await faultyRun({ hub, client, folder, pool }, mine);
        } catch (error) {
          throw new Error(`seed ${mine}: ${error instanceof Error ? error.stack : String(error)}`, { cause: error });
        }
      }
    };
    await Promise.all(Array.from({ length: abreast }, lane));
    t.diagnostic(`${Math.round(allKept / 1e6)} MB were kept over the kills`);
    // How much depends on the disk, beside the kills that waited for a record.
    assert.ok(allKept > 100_000, `${allKept} bytes kept`);
    assert.deepEqual(
      [...new Set(hub.requests.filter((seen) => seen.origin === "storage").map((seen) => seen.authorized))],
      [false],
    );
    assert.deepEqual(await readdir(folder), []);
  });
});
