// What models take of memory: asked of the engine in the background, once for each file, settings and build, and kept.
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import type { EngineDevice } from "../engines/llama/devices.ts";
import type { FitTool } from "../engines/llama/fit-params.ts";
import { type CachedModel, findCached, type Observed } from "../plan/observed.ts";
import { ctxSizeIn, effectiveValues, type PresetFile } from "../plan/preset-file.ts";
import type { MemoryBook } from "./book.ts";
import { createJobs } from "./jobs.ts";
import { type ByDevice, type Estimate, fitsIn, host, type Need, needOf } from "./need.ts";
import { createOracle } from "./oracle.ts";
import { type Question, questionOf } from "./question.ts";
import { contextStep, largestContext, type Remedy } from "./remedy.ts";

export type Memory = ReturnType<typeof createMemory>;

export interface MemoryOptions {
  readonly book: MemoryBook;
  /** Beside the llama-server in use; null: there is none, undefined: there is no llama-server. */
  readonly findTool: () => Promise<FitTool | null | undefined>;
  /** What llama-fit-params prints. Errors: `engine_failed`, `cancelled`. */
  readonly run: (tool: FitTool, args: readonly string[]) => Promise<string>;
  /** Asked only where an estimate names a device. */
  readonly devices: () => Promise<readonly EngineDevice[]>;
  /** Bytes of main memory. */
  readonly mainMemory: () => number;
  /** Bytes that models may take per device, all together. */
  readonly limits: () => ByDevice;
  /** More is known of models; `left`: so many questions are open. */
  readonly onKnown: (left: number) => void;
  readonly warn: (message: string, fields: object) => void;
}

/** What models are loaded with. */
interface World {
  readonly models: readonly CachedModel[];
  readonly preset: PresetFile;
  /** Workers have the memory. */
  readonly isRemote: boolean;
}

export function createMemory(options: MemoryOptions) {
  const { book, warn } = options;
  let world: World | null = null;
  let tool: FitTool | null | undefined;
  let devices: readonly EngineDevice[] | null = null;
  /** By key: why it cannot be known. */
  const failures = new Map<string, string>();
  /** By key and limits. */
  const remedies = new Map<string, { readonly question: string; readonly within: ByDevice; readonly remedy: Remedy }>();
  const jobs = createJobs({
    onDone: options.onKnown,
    onError: (error) => warn("what a model takes of memory could not be asked", { error: String(error) }),
  });
  const oracle = createOracle({
    run: async (args) => {
      if (!tool) throw new GatewayError("engine_failed", noTool);
      return options.run(tool, args);
    },
    totals: async (names) => {
      if (names.some((name) => name !== host)) devices ??= await options.devices();
      return totals();
    },
  });

  const keyOf = (question: Question): string => `${tool?.build ?? ""} ${question.key}`;

  function totals(): ByDevice {
    const own = (devices ?? []).map(({ name, totalBytes }) => [name, totalBytes] as const);
    return new Map([[host, options.mainMemory()], ...own]);
  }

  function modelOf(upstreamId: string): CachedModel | undefined {
    return world?.models.find((model) => model.upstreamId === upstreamId && model.complete);
  }

  function questionFor(model: CachedModel, overrides: Readonly<Record<string, string>> = {}): Question {
    const values = world ? effectiveValues(world.preset, model.upstreamId) : [];
    return questionOf(model, new Map([...values, ...Object.entries(overrides)]));
  }

  /** Answers from what is kept, else asks. Errors: `engine_failed`, `cancelled`. */
  async function estimate(question: Question): Promise<Estimate> {
    const known = book.get(keyOf(question)).estimate;
    if (known) return known;
    const found = await oracle(question);
    book.note(keyOf(question), { estimate: found });
    return found;
  }

  /** Why nothing can be known of any model; null: nothing stands in the way. */
  function obstacle(): string | null {
    if (world?.isRemote === true) return "RPC workers have the memory, which is not estimated";
    return tool === null ? noTool : null;
  }

  function ask(question: Question, isUrgent: boolean): void {
    const key = keyOf(question);
    const answer = async (): Promise<void> => {
      try {
        await estimate(question);
      } catch (error) {
        const { code, message } = toGatewayError(error);
        if (code !== "cancelled") failures.set(key, message);
      }
    };
    jobs.add(key, answer, isUrgent);
  }

  function lookUp(upstreamId: string, isUrgent: boolean): Need | null | undefined {
    if (obstacle() !== null) return null;
    const model = modelOf(upstreamId);
    if (!model || !tool) return world && tool ? null : undefined;
    const question = questionFor(model);
    const { estimate: known, measured } = book.get(keyOf(question));
    const need = needOf(known, measured);
    if (need) return need;
    if (failures.has(keyOf(question))) return null;
    ask(question, isUrgent);
    return undefined;
  }

  /** The largest context that fits; null: none does. Errors: `engine_failed` for settings that it cannot take. */
  function contextFor(
    model: CachedModel,
    within: ByDevice,
    overrides: Readonly<Record<string, string>> = {},
  ): Promise<number | null> {
    const values = world ? effectiveValues(world.preset, model.upstreamId) : new Map<string, string>();
    const most = ctxSizeIn(values) ?? model.nCtxTrain ?? contextStep;
    const askFor = (tokens: number) => estimate(questionFor(model, { ...overrides, "ctx-size": String(tokens) }));
    return largestContext(askFor, within, most);
  }

  function seekRemedy(key: string, model: CachedModel, within: ByDevice): void {
    const question = keyOf(questionFor(model));
    jobs.add(
      key,
      async () => {
        // Of settings that the model cannot take there is none.
        const context = await contextFor(model, within).catch(() => null);
        const quantized = await contextFor(model, within, quantizedCache).catch(() => null);
        const remedy = { context, quantized: quantized === context ? null : quantized };
        remedies.set(key, { question, within, remedy });
      },
      true,
    );
  }

  return {
    /** The newest snapshot: the document's models are asked about. */
    see: async ({ models, rpc }: Desired, { cache, preset }: Observed): Promise<void> => {
      if (cache.state === "unknown" || preset.state === "unknown") return;
      const isRemote = rpc.mode === "rpc" && rpc.workers.length > 0;
      world = { models: cache.value.models, preset: preset.value, isRemote };
      const found = await options.findTool();
      if (found?.build !== tool?.build || found === null) {
        [tool, devices] = [found, null];
        failures.clear();
        remedies.clear();
        options.onKnown(jobs.count());
      }
      for (const { id } of models) {
        const cached = findCached(world.models, id);
        if (cached) lookUp(cached.upstreamId, false);
      }
    },
    /** null: cannot be known (`why`); undefined: not asked yet, or being asked. One that is asked for comes first. */
    need: (upstreamId: string): Need | null | undefined => lookUp(upstreamId, true),
    /** Why the need cannot be known; null: it is, or it is being asked. */
    why: (upstreamId: string): string | null => {
      const model = modelOf(upstreamId);
      return obstacle() ?? (model ? (failures.get(keyOf(questionFor(model))) ?? null) : "it is not in the model cache");
    },
    limits: options.limits,
    /** What would make a model fit that does not; undefined: it is being looked for. `left`: what it could take. */
    remedy: (upstreamId: string, left: ByDevice = options.limits()): Remedy | undefined => {
      const model = modelOf(upstreamId);
      if (!model) return undefined;
      const question = keyOf(questionFor(model));
      const within = rounded(left);
      const key = `${question} ${JSON.stringify([...within])}`;
      if (!remedies.has(key)) seekRemedy(key, model, within);
      const last = [...remedies.values()].findLast((each) => each.question === question && fitsIn(each.within, left));
      return (remedies.get(key) ?? last)?.remedy;
    },
    /** What the engine's allocator said of it; null: that is not known. */
    estimated: (upstreamId: string): Estimate | null => {
      const model = modelOf(upstreamId);
      return model ? book.get(keyOf(questionFor(model))).estimate : null;
    },
    /** What it took once it was loaded with the present settings. */
    noteMeasured: (upstreamId: string, measured: ByDevice): void => {
      const model = modelOf(upstreamId);
      if (model) book.note(keyOf(questionFor(model)), { measured });
    },
    close: async (): Promise<void> => {
      jobs.close();
      await book.close();
    },
  };
}

/** Down, by 3 % at most: the memory that others take changes all the time, and a remedy costs some runs. */
function rounded(limits: ByDevice): ByDevice {
  return new Map(
    [...limits].map(([device, limit]) => {
      const step = 2 ** (Math.floor(Math.log2(Math.max(32, limit))) - 5);
      return [device, Math.floor(Math.max(0, limit) / step) * step];
    }),
  );
}

const quantizedCache = { "cache-type-k": "q8_0", "cache-type-v": "q8_0" };
const noTool = "there is no llama-fit-params beside llama-server";
