// Random documents, preset files, caches and mishaps for the planner's properties. Seeded: a failure comes back.
import fc from "fast-check";
import type { Desired } from "../../../src/desired/document/document.ts";
import type { Hub } from "./simulated-cache.ts";
import { createSimulatedWorld, type Drift, type SimulatedWorld } from "./simulated-world.ts";
import { desiredFrom, inventoryEntry, type WorldFile, worldFile } from "./world.ts";

export const hub: Hub = {
  "acme/alpha-GGUF": [
    "alpha-Q4_K_M.gguf",
    "alpha-Q8_0.gguf",
    "alpha-UD-Q4_K_XL.gguf",
    "alpha-UD-Q8_0.gguf",
    "alpha-Q6_K.gguf",
    "alpha-UD-Q6_K.gguf",
  ],
  "Acme/Qwen2.5-7B": ["Qwen2.5-7B.q5_k_m.gguf", "qwen2.5-f16.gguf"],
  "acme/plain": ["tiny.gguf", "foo.Bar-1.gguf", "Q4_0/deep.gguf"],
  "acme/sharded": ["big-Q8_0-00001-of-00002.gguf", "big-Q8_0-00002-of-00002.gguf"],
};

/** Ids that a pull can satisfy, and some that it cannot. */
const ids = [
  "acme/alpha-GGUF:Q4_K_M",
  "acme/alpha-GGUF:q8_0",
  "acme/alpha-GGUF:UD-Q4_K_XL",
  "acme/alpha-GGUF:Q6_K",
  "acme/alpha-GGUF:alpha-UD-Q8_0",
  "Acme/Qwen2.5-7B:Q5_K_M",
  "Acme/Qwen2.5-7B:F16",
  "acme/plain:tiny",
  "acme/plain:foo.Bar-1",
  "acme/plain:deep",
  "acme/sharded:Q8_0",
  "acme/nowhere:Q8_0",
  "acme/plain:Q2_K",
];

const localIds = ["local/one:Q8_0", "local/two:my-file", "local/two:Q4_K_M"];

/** Other programs' files, also ones that take our names. */
const foreignFiles = [
  "acme/alpha-GGUF/a-Q8_0.gguf",
  "acme/alpha-GGUF/z-UD-Q6_K.gguf",
  "acme/alpha-GGUF/alpha-Q4_K_M.gguf",
  "acme/plain/tiny.gguf@b",
  "acme/plain/tiny.gguf!",
  "other/vision/eye-Q8_0.gguf",
  "other/vision/mmproj-F16.gguf",
  "other/weird/a [1]#.gguf",
  "acme/sharded/big-Q8_0-00001-of-00002.gguf",
  "local/one/x-Q8_0.gguf",
];

const presetLines = [
  "[*]",
  "[acme/alpha-GGUF:Q4_K_M]",
  "[acme/alpha-GGUF:alpha-UD-Q4_K_XL] ; mine",
  "[Acme/Qwen2.5-7B:q5_k_m]",
  "[acme/gone:Q8_0]",
  "[other/vision:Q8_0]",
  "[broken",
  "[acme/plain:TINY] garbage",
  " [indented]",
  "[]",
  "[default]",
  "ctx-size = 1234",
  "c = 77",
  "LLAMA_ARG_CTX_SIZE = 99",
  "threads = 3 ; three",
  "no-such-key = 1",
  "ctx-size = abc",
  "model = /people/own.gguf",
  "; a note",
  "  # indented note",
  "garbage",
  "  threads = 4",
  "; model-gateway sets: threads",
  "model-gateway sets: threads",
  "",
  "\u00a0",
  "version = 1",
];

const ctxSize = fc.option(fc.constantFrom(256, 4096, 16_384), { nil: undefined });

export const randomDesired: fc.Arbitrary<Desired> = fc
  .record({
    models: fc.uniqueArray(fc.tuple(fc.constantFrom(...ids), ctxSize, fc.boolean(), fc.boolean()), {
      maxLength: 5,
      selector: ([id]) => id.toLowerCase(),
    }),
    local: fc.subarray(localIds, { maxLength: 2 }),
    context: ctxSize,
    prune: fc.boolean(),
    allowEmpty: fc.boolean(),
    rpc: fc.boolean(),
  })
  .map(({ models, local, context, prune, allowEmpty, rpc }) =>
    desiredFrom({
      context: context === undefined ? {} : { default: context },
      models: [
        ...models.map(([id, size, revision, threads]) => ({
          id,
          ...(size === undefined ? {} : { ctxSize: size }),
          ...(revision ? { revision: "v2" } : {}),
          ...(threads ? { preset: { threads: 2, mlock: true } } : {}),
        })),
        ...local.map((id) => ({ id, source: "./somewhere/starter-Q8_0.gguf" })),
      ],
      prune,
      allowEmpty,
      rpc: rpc ? { mode: "rpc", workers: ["127.0.0.1:50052"] } : {},
    }),
  );

export const randomPreset: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(fc.constantFrom(...presetLines), { maxLength: 12 }),
    fc.constantFrom("\n", "\r\n"),
    fc.constantFrom("", "\uFEFF"),
  )
  .map(([lines, end, start]) => start + lines.join(end));

const randomFile: fc.Arbitrary<WorldFile> = fc
  .constantFrom(
    ...foreignFiles,
    ...Object.entries(hub).flatMap(([repo, paths]) => paths.map((path) => `${repo}/${path}`)),
  )
  .map(worldFile);

const nth = fc.nat({ max: 30 });

export const randomDrift: fc.Arbitrary<Drift> = fc.oneof(
  fc.constantFrom<Drift>(
    { kind: "crash" },
    { kind: "hang" },
    { kind: "preset.emptied" },
    { kind: "cache.restored" },
    { kind: "inventory.lost" },
  ),
  nth.map((at): Drift => ({ kind: "file.lost", nth: at })),
  nth.map((at): Drift => ({ kind: "model.loaded", nth: at })),
  randomFile.map((file): Drift => ({ kind: "file.added", file })),
  fc.tuple(fc.constantFrom(...presetLines), nth).map(([text, at]): Drift => ({ kind: "preset.edited", text, nth: at })),
  fc.constantFrom(...Object.keys(hub)).map((repo): Drift => ({ kind: "folder.unreadable", repo })),
);

/** Entries for some of the cached files, some of them kept, and one whose files are gone. */
const randomInventory = fc
  .array(fc.tuple(fc.constantFrom(...ids), fc.boolean(), fc.constantFrom(...Object.values(hub).flat())), {
    maxLength: 4,
  })
  .map((entries) => {
    const byId = new Map(entries.map(([id, keep, path]) => [id, inventoryEntry(id, [path], keep)]));
    return [...byId.values()];
  });

/** What a world starts from. Plain data, so that a failure can be made smaller: a world itself changes as it is used. */
export type WorldSeed = Omit<Parameters<typeof createSimulatedWorld>[0], "hub"> & {
  /** Mishaps, each after some rounds of work. */
  readonly past: readonly { readonly rounds: number; readonly drift: Drift }[];
};

const fresh = {
  desired: randomDesired,
  files: fc.uniqueArray(randomFile, { maxLength: 6, selector: (file) => JSON.stringify(file) }),
  inventory: randomInventory,
  preset: randomPreset,
  reloads: fc.boolean(),
};

export const randomWorld: fc.Arbitrary<WorldSeed> = fc.record({ ...fresh, past: fc.constant([]) });

/** A world some way along. */
export const randomMoment: fc.Arbitrary<WorldSeed> = fc.record({
  ...fresh,
  past: fc.array(fc.record({ rounds: fc.nat({ max: 4 }), drift: randomDrift }), { maxLength: 4 }),
});

export function build({ past, ...seed }: WorldSeed): SimulatedWorld {
  const simulated = createSimulatedWorld({ ...seed, hub });
  for (const { rounds, drift } of past) {
    for (let round = 0; round < rounds; round++) simulated.step(simulated.plan());
    simulated.drift(drift);
  }
  return simulated;
}

export const runs: fc.Parameters<unknown> = { seed: 20_260_101, numRuns: Number(process.env["HISTORIES"] ?? 100) };
