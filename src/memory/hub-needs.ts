// What models that are still on the hub would take of memory: llama-fit-params is asked about files of their sizes that have
// their heads and no weights, which it does not read.
import { mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { createSerial } from "../core/serial.ts";
import type { HubClient } from "../hub/client.ts";
import { fetchHead } from "../hub/head.ts";
import type { HubModel } from "./hub-models.ts";
import type { Memory } from "./memory.ts";
import { bytesOf, type Need } from "./need.ts";
import { pathsIn, type Question } from "./question.ts";

export type HubNeeds = ReturnType<typeof createHubNeeds>;

/** For the heads of one model. */
const longestMs = 30_000;

export function createHubNeeds({
  hub,
  memory,
  over,
}: {
  readonly hub: Pick<HubClient, "openFile">;
  readonly memory: Pick<Memory, "knownOf" | "ask" | "obstacle">;
  /** Ends what is under way. */
  readonly over: AbortSignal;
}) {
  const inTurn = createSerial();

  /** One at a time; runs `work` while there are files with the heads of the models that the question is about. */
  function withHeads<T>(
    question: Question,
    onHub: readonly HubModel[],
    work: (askedOf: AskedOf) => Promise<T>,
  ): Promise<T> {
    const models = modelsOf(question, onHub);
    return inTurn(async () => {
      const folder = await mkdtemp(join(tmpdir(), "model-gateway-heads-"));
      try {
        const places = new Map<string, string>();
        for (const [index, model] of models.entries())
          for (const [path, place] of await writeHeads(join(folder, String(index)), model)) places.set(path, place);
        const moved = (path: string): string => places.get(path) ?? path;
        return await work((about) => ({
          ...about,
          runs: about.runs.map((args) => args.map(moved)),
          files: about.files.map(moved),
        }));
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    });
  }

  async function writeHeads(folder: string, { repo, commit, files }: HubModel): Promise<[string, string][]> {
    const late = AbortSignal.timeout(longestMs);
    const signal = AbortSignal.any([over, late]);
    await mkdir(folder);
    const places: [string, string][] = [];
    for (const { path, file, isModel } of files) {
      // Shards find each other by their names.
      const place = join(folder, basename(path));
      const head = isModel
        ? await fetchHead(hub, { repo, commit, file }, signal).catch(explained(late))
        : Buffer.alloc(0);
      await writeHole(place, head, file.size);
      places.push([path, place]);
    }
    return places;
  }

  return {
    withHeads,
    /** Of a model in the cache, or of one of these. Errors: `hub_*`, `not_a_model`, `engine_failed`, `engine_missing`, `cancelled`. */
    need: async (question: Question, onHub: readonly HubModel[]): Promise<Need> => {
      const known = memory.knownOf(question);
      if (known) return known;
      const obstacle = memory.obstacle();
      if (obstacle !== null) throw new GatewayError("engine_missing", obstacle);
      const models = modelsOf(question, onHub);
      const estimate = await (models.length === 0
        ? memory.ask(question)
        : withHeads(question, models, (askedOf) => memory.ask(askedOf(question))));
      return { bytes: bytesOf(estimate), source: "estimated", estimated: bytesOf(estimate), measured: null };
    },
  };
}

/** Those that the question is about. */
export function modelsOf(question: Question, onHub: readonly HubModel[]): HubModel[] {
  const paths = new Set(pathsIn(question));
  return onHub.filter(({ files }) => files.some(({ path }) => paths.has(path)));
}

/** The same question about other files. */
export type AskedOf = (question: Question) => Question;

function explained(late: AbortSignal) {
  return (error: unknown): never => {
    if (!late.aborted) throw error;
    throw new GatewayError("hub_unreachable", `the hub did not send the head of its file within ${longestMs / 1000} s`);
  };
}

async function writeHole(path: string, head: Buffer, size: number): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(head);
    await file.truncate(size);
  } finally {
    await file.close();
  }
}
