// A scan answers from the one before where nothing has changed, and never otherwise: it is compared with that of a new scanner.
import assert from "node:assert/strict";
import { appendFile, link, mkdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import fc from "fast-check";
import { contentKey } from "../../../../src/cache/layout/models.ts";
import { readSnapshotFile } from "../../../../src/cache/scan/repo-folder.ts";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import type { CacheSnapshot, InventoryEntry } from "../../../../src/plan/observed.ts";
import { type CacheRepo, cacheRepo, commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const [main, old] = [commitOf("main"), commitOf("old")];
const repos = ["acme/demo", "acme/other"] as const;
const paths = [
  "demo-Q8_0.gguf",
  "demo-Q4_0.gguf",
  "sub/big-00001-of-00002.gguf",
  "sub/big-00002-of-00002.gguf",
  "README.md",
];

/** Other bytes each time, and another size: neither the clock's tick nor a number used again hides a change from the disk. */
function contents(): () => Buffer {
  let count = 0;
  return () => {
    count++;
    return modelHead("x".repeat(count), 1024 + count);
  };
}

/** The head of a model that became incomplete is known from before, and is not read where it always was. */
function withoutHeads({ models, ...rest }: CacheSnapshot): object {
  const heads = { nCtxTrain: null, architecture: null, fileType: null, sizeLabel: null, pooling: null };
  return { ...rest, models: models.map((model) => (model.complete ? model : { ...model, ...heads })) };
}

interface World {
  readonly cacheDir: string;
  readonly of: (name: string) => CacheRepo;
  readonly next: () => Buffer;
  inventory: readonly InventoryEntry[];
  hashed: ReadonlyMap<string, boolean>;
  /** The answer of the scanner that has scanned before; the same as a new one's. */
  scan(): Promise<CacheSnapshot>;
}

async function worldOf(t: TestContext): Promise<World> {
  const cacheDir = join(await scratchFolder(t), "hub");
  await mkdir(cacheDir);
  const world: World = {
    cacheDir,
    of: (name) => cacheRepo(cacheDir, name),
    next: contents(),
    inventory: [],
    hashed: new Map(),
    scan: async () => {
      const found = await scanner.scan();
      const fresh = await scannerOf().scan();
      assert.ok(found.state === "known" && fresh.state === "known");
      assert.deepEqual(withoutHeads(found.value), withoutHeads(fresh.value));
      return found.value;
    },
  };
  const scannerOf = () =>
    createCacheScanner(
      cacheDir,
      undefined,
      () => world.inventory,
      () => world.hashed,
    );
  const scanner = scannerOf();
  return world;
}

async function demoWorld(t: TestContext) {
  const world = await worldOf(t);
  const [demo, other] = [world.of(repos[0]), world.of(repos[1])];
  const bytes = world.next();
  const path = await demo.link(main, "demo-Q8_0.gguf", bytes);
  for (const repo of [demo, other]) {
    await repo.link(main, "demo-Q4_0.gguf", world.next());
    await repo.main(main);
  }
  // As a removal by another tool leaves it.
  await mkdir(join(world.cacheDir, "models--acme--empty"));
  return { world, demo, path, bytes, blob: join(demo.root, "blobs", sha256(bytes)) };
}

type Demo = Awaited<ReturnType<typeof demoWorld>>;

const changes: Readonly<Record<string, (demo: Demo) => Promise<unknown>>> = {
  "a file is added": ({ world, demo }) => demo.link(main, "demo-Q5_0.gguf", world.next()),
  "a plain file is added in a new folder": ({ world, demo }) => demo.plain(main, "a/b/demo-Q5_0.gguf", world.next()),
  "a revision is added": ({ world, demo }) => demo.link(old, "demo-Q5_0.gguf", world.next()),
  "a link is removed": ({ path }) => rm(path),
  "a link is renamed": ({ path }) => rename(path, path.replace("Q8_0", "Q6_K")),
  "a link is replaced by a rename": async ({ world, demo, path }) => {
    await rename(await demo.link(main, "new.gguf", world.next()), path);
  },
  "a link leads elsewhere": async ({ world, demo, path }) => {
    const bytes = world.next();
    await writeFile(join(demo.root, "blobs", sha256(bytes)), bytes);
    await rm(path);
    await symlink(`../../blobs/${sha256(bytes)}`, path);
  },
  "a link leads nowhere": ({ blob }) => rm(blob),
  "a link becomes a name of the same file": async ({ path, blob }) => {
    await rm(path);
    await link(blob, path);
  },
  "a link loops": async ({ path }) => {
    await rm(path);
    await symlink(path, path);
  },
  "a ref is rewritten in its place": ({ demo }) => demo.main(old),
  "a ref is removed": ({ demo }) => rm(join(demo.root, "refs"), { recursive: true }),
  "a blob is cut": ({ blob, bytes }) => truncate(blob, bytes.length - 1),
  "a blob grows": ({ blob }) => appendFile(blob, "x"),
  "a blob is replaced by a rename": async ({ world, blob }) => {
    await writeFile(`${blob}.new`, world.next());
    await rename(`${blob}.new`, blob);
  },
  "the revisions are moved": async ({ demo }) => {
    await rename(join(demo.root, "snapshots"), join(demo.root, "..", "moved"));
    await symlink(join("..", "moved"), join(demo.root, "snapshots"));
  },
  "the inventory has another size": async ({ world, blob, bytes }) => {
    const file = { path: "demo-Q8_0.gguf", blob: blob.slice(-64), size: bytes.length + 1 };
    world.inventory = [inventoryEntry(main, [file])];
  },
  "a checksum is found wrong": async ({ world, demo }) => {
    const file = await readSnapshotFile(demo.root, main, "demo-Q8_0.gguf");
    assert.ok(file);
    world.hashed = new Map([[contentKey(repos[0], main, file), true]]);
  },
};

function inventoryEntry(commit: string, files: InventoryEntry["files"]): InventoryEntry {
  const id = `${repos[0]}:Q8_0`;
  return { id, repo: repos[0], tag: "Q8_0", revision: "x", commit, files, addedAt: "", keep: false };
}

describe("a second scan", () => {
  for (const [what, change] of Object.entries(changes)) {
    it(`sees that ${what}`, async (t) => {
      const demo = await demoWorld(t);
      const before = await demo.world.scan();
      assert.equal(await demo.world.scan(), before, "nothing has changed: not even a copy is made");
      await change(demo);
      const after = await demo.world.scan();
      assert.notDeepEqual([after.models, after.signature], [before.models, before.signature]);
      await demo.world.scan();
    });
  }

  it("sees that a repository goes, and comes back as it was", async (t) => {
    const { world, demo } = await demoWorld(t);
    const before = await world.scan();
    await rename(demo.root, join(world.cacheDir, "away"));
    assert.deepEqual(
      (await world.scan()).models,
      before.models.filter(({ repo }) => repo === repos[1]),
    );
    await rename(join(world.cacheDir, "away"), demo.root);
    assert.deepEqual(await world.scan(), before);
  });

  it("sees that a folder cannot be read, and can again", async (t) => {
    const { world, demo } = await demoWorld(t);
    const before = await world.scan();
    const folders = [demo.root, ...["snapshots", "refs", "blobs"].map((at) => join(demo.root, at))];
    for (const folder of folders) {
      // Not by permissions: root reads everything.
      await rename(folder, join(world.cacheDir, "away"));
      await symlink(folder, folder);
      assert.deepEqual((await world.scan()).unreadable, [repos[0]], folder);
      await rm(folder);
      await rename(join(world.cacheDir, "away"), folder);
      assert.deepEqual(await world.scan(), before);
    }
  });
});

/** Does to the cache what the number means; what cannot be done, as it is not there, is not done. */
async function perform(world: World, code: number): Promise<void> {
  const pick = <T>(all: readonly T[], shift: number): T => all[(code >> shift) % all.length] as T;
  const name = pick(repos, 4);
  const repo = world.of(name);
  const commit = pick([main, main, old], 6);
  const path = pick(paths, 8);
  const place = join(repo.root, "snapshots", commit, path);
  const away = `${repo.root.replace("models--", "away--")}`;
  switch (code % 16) {
    case 0:
      return repo.main(pick([main, old, "", `${main}\n`], 11));
    case 1:
      return rm(pick([place, dirname(place), join(repo.root, "refs"), repo.root], 11), { recursive: true });
    case 2:
      return rename(place, join(repo.root, "snapshots", pick([main, old], 11), pick(paths, 13)));
    case 3:
      return rename(...(pick([0, 1], 11) === 0 ? ([repo.root, away] as const) : ([away, repo.root] as const)));
    case 4:
      await rm(place);
      return symlink(pick([place, "nowhere", "../../blobs", dirname(place), world.cacheDir], 11), place);
    case 5:
      return truncate(place, (code >> 11) % 200);
    case 6:
      return appendFile(place, "x".repeat(1 + (code >> 11)));
    case 7:
      await link(place, `${place}.other`);
      return rename(`${place}.other`, join(dirname(place), `x${(code >> 11) % 3}.gguf`));
    case 8: {
      const file = await readSnapshotFile(repo.root, commit, path);
      if (file) world.hashed = new Map([...world.hashed, [contentKey(name, commit, file), (code >> 11) % 2 === 0]]);
      return;
    }
    case 9: {
      const file = await readSnapshotFile(repo.root, commit, path);
      const stored = { path, blob: file?.blob ?? "", size: (file?.size ?? 0) + ((code >> 11) % 2) };
      world.inventory = pick([[], [inventoryEntry(commit, [stored])]], 12);
      return;
    }
    case 10:
      await rename(join(repo.root, "snapshots"), join(world.cacheDir, `moved-${code}`));
      return symlink(join("..", `moved-${code}`), join(repo.root, "snapshots"));
    case 11:
      await writeFile(`${place}.new`, world.next());
      return rename(`${place}.new`, place);
    case 12:
      await rm(place, { force: true });
      return void (await repo.plain(commit, path, world.next()));
    default:
      await rm(place, { force: true, recursive: true });
      return void (await repo.link(commit, path, world.next()));
  }
}

it("after any history of changes is what a first one would be", async (t) => {
  let [scans, same] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(2 ** 20), { minLength: 10, maxLength: 30 }), async (history) => {
      const world = await worldOf(t);
      let last = await world.scan();
      for (const code of history) {
        await perform(world, code).catch((error: NodeJS.ErrnoException) => {
          if (error.code === undefined) throw error;
        });
        const found = await world.scan();
        scans++;
        if (found === last) same++;
        last = found;
      }
    }),
    { numRuns: Number(process.env["HISTORIES"] ?? 50) },
  );
  t.diagnostic(`${scans} scans, ${same} of them answered by the one before`);
  assert.ok(same > scans / 20 && same < scans / 2, `${same} of ${scans}`);
});
