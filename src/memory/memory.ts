// What models take of memory with the settings that they would be loaded with: asked of the engine in the background, once for
// each file, settings and build.
import { contextInForce } from "../core/context-size.ts";
import type { Desired } from "../desired/document/document.ts";
import type { EngineDevice } from "../engines/llama/devices.ts";
import type { FitTool } from "../engines/llama/fit-params.ts";
import { findCached, findRouted } from "../plan/find-model.ts";
import type { CachedModel, Observed } from "../plan/observed.ts";
import { ctxSizeIn, effectiveValues, type PresetFile } from "../plan/preset-file.ts";
import type { MemoryBook } from "./book.ts";
import { createBounds } from "./bounds.ts";
import { createEstimates, type Estimates, noTool } from "./estimates.ts";
import { type FitsFact, fitsFact, refusedFact } from "./fits.ts";
import { createJobs } from "./jobs.ts";
import { type ByDevice, bytesOf, type Estimate, host, leftBeside, type Need, needOf } from "./need.ts";
import { type Question, questionOf } from "./question.ts";
import { contextStep, createRemedies, heldOf, largestContext, type Overrides, type Remedy } from "./remedy.ts";
import type { Space } from "./space.ts";

export type Memory = ReturnType<typeof createMemory>;

interface MemoryOptions {
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
  readonly limits: Space["limits"];
  /** A model is being loaded: what nothing waits for is asked after it. */
  readonly isLoading: () => boolean;
  /** More is known of models; `left`: so many questions and searches are open. */
  readonly onKnown: (left: number) => void;
  readonly warn: (message: string, fields: object) => void;
}

export function createMemory(options: MemoryOptions) {
  const { book, warn, limits } = options;
  const world = createWorld();
  const { modelOf, questionFor } = world;
  let devices: readonly EngineDevice[] | null = null;
  const count = (): number => jobs.count() + searches.count();
  const background = {
    isLoading: options.isLoading,
    onDone: () => options.onKnown(count()),
    onError: (error: unknown) => warn("what a model takes of memory could not be asked", { error: String(error) }),
  };
  const jobs = createJobs(background);
  /** Apart: a search asks ten times, and a model that is about to be loaded would wait for its end. */
  const searches = createJobs(background);
  const remedies = createRemedies((key, work) => void searches.add(key, work, true));
  const estimates = createEstimates({
    book,
    run: options.run,
    totals: async (names) => {
      if (names.some((name) => name !== host)) devices ??= await options.devices();
      return totals();
    },
  });

  function totals(): ByDevice {
    const own = (devices ?? []).map(({ name, totalBytes }) => [name, totalBytes] as const);
    return new Map([[host, options.mainMemory()], ...own]);
  }

  function whyUnknown(upstreamId: string): string | null {
    const model = modelOf(upstreamId);
    if (!model) return "it is not in the model cache";
    if (world.isRemote()) return remote;
    const question = questionFor(model);
    return estimates.known(question) ? null : estimates.why(question);
  }

  function lookUp(upstreamId: string, isUrgent: boolean): Need | null | undefined {
    const model = modelOf(upstreamId);
    if (!estimates.isReady() && whyUnknown(upstreamId) === null) return undefined;
    const question = model && questionFor(model);
    const need = question && estimates.known(question);
    if (!question || need) return need ?? null;
    const isUnknown = whyUnknown(upstreamId) !== null;
    if (isUnknown && !estimates.isDue(question)) return null;
    void askFor(question, isUrgent);
    // What has failed may fail again, after the longest time: no request waits for it.
    return isUnknown ? null : undefined;
  }

  /** Resolves once it is answered; a failure is noted with the question. */
  function askFor(question: Question, isUrgent: boolean): Promise<void> {
    return jobs.add(estimates.keyOf(question), () => estimates.ask(question).then(ignore, ignore), isUrgent);
  }

  /** The largest context up to the one in force that fits; null: none does. Errors: `engine_failed`, as for settings that it cannot take. */
  function contextFor(
    model: CachedModel,
    within: ByDevice,
    overrides: Overrides,
    most = world.contextOf(model),
  ): Promise<number | null> {
    const ask = async (tokens: number): Promise<ByDevice> =>
      bytesOf(await estimates.ask(questionFor(model, { ...overrides, "ctx-size": String(tokens) })));
    return largestContext(ask, within, most);
  }

  function remedyFor(model: CachedModel, within: ByDevice): Remedy | null | undefined {
    const seek = (most: ByDevice, overrides: Overrides) => contextFor(model, most, overrides);
    return remedies.of(estimates.keyOf(questionFor(model)), within, seek);
  }

  return {
    ...readers({ estimates, world, askFor }),
    /** The newest snapshot: the document's models are asked about. */
    see: async (desired: Desired, observed: Observed): Promise<void> => {
      world.see(desired, observed);
      if (estimates.use(await options.findTool())) {
        devices = null;
        remedies.clear();
        options.onKnown(count());
      }
      for (const id of world.named(desired)) lookUp(id, false);
    },
    /** What the router has read, before the snapshot that shows it. */
    seePreset: world.seePreset,
    /** null: cannot be known (`why`); undefined: not asked yet, or being asked. `isUrgent`: a load waits for it. */
    need: (upstreamId: string, isUrgent = true): Need | null | undefined => lookUp(upstreamId, isUrgent),
    /** Why the need cannot be known; null: it is, or it is being asked. */
    why: whyUnknown,
    /** Bytes that models may take per device, all together. */
    limits,
    /** Of a model in the cache beside what pinned models have; nothing is asked of the engine for it but what would make it fit. */
    fits: (upstreamId: string, pinned: readonly ByDevice[]): FitsFact => {
      const model = modelOf(upstreamId);
      const why = whyUnknown(upstreamId);
      const question = model && questionFor(model);
      if (why !== null && question && estimates.isRefused(question)) return refusedFact(why);
      if (!question || why !== null) return { reason: "NotEstimated", message: `What it needs is not known: ${why}.` };
      const need = estimates.known(question);
      if (!need) return estimating;
      const within = leftBeside(limits(), pinned);
      const where = pinned.length > 0 ? { where: "the pinned models leave" } : {};
      return fitsFact(need, within, () => remedyFor(model, within), where);
    },
    /** The largest context up to `most` that fits into a little less; null: none does, or that cannot be known. */
    largest: async (upstreamId: string, within: ByDevice, most: number): Promise<number | null> => {
      const model = modelOf(upstreamId);
      return model ? contextFor(model, heldOf(within), {}, most).catch(() => null) : null;
    },
    /** What would make a model fit into so much; null: that cannot be known, undefined: it is being sought. */
    remedy: (upstreamId: string, within: ByDevice): Remedy | null | undefined => {
      const model = modelOf(upstreamId);
      return model ? remedyFor(model, within) : null;
    },
    close: async (): Promise<void> => {
      jobs.close();
      searches.close();
      await book.close();
    },
  };
}

/** What needs nothing but the questions. */
function readers({
  estimates,
  world,
  askFor,
}: {
  readonly estimates: Estimates;
  readonly world: World;
  readonly askFor: (question: Question, isUrgent: boolean) => Promise<void>;
}) {
  const { modelOf, questionFor, contextOf } = world;
  const bounds = createBounds();
  /** Names all but the context. */
  const settingsOf = (model: CachedModel): string => estimates.keyOf(questionFor(model, { "ctx-size": "" }));
  return {
    /** What is known of a need, and nothing is asked; null: nothing. */
    known: (upstreamId: string): Need | null => {
      const model = modelOf(upstreamId);
      return model ? estimates.known(questionFor(model)) : null;
    },
    /** Why nothing can be asked; null: nothing stands in the way. */
    obstacle: (): string | null => (world.isRemote() ? remote : estimates.isReady() ? null : noTool),
    /** What is known of the answer to any question; null: nothing. */
    knownOf: (question: Question): Need | null => estimates.known(question),
    /** The answer to any question. Errors: `engine_failed`, `cancelled`. */
    ask: (question: Question): Promise<Estimate> => estimates.ask(question),
    /** Of a model in the cache, with some settings in place of its own. */
    questionWith: (upstreamId: string, overrides: Overrides): Question | null => {
      const model = modelOf(upstreamId);
      return model ? questionFor(model, overrides) : null;
    },
    /** The answer to any question, as soon as it is there; null: it cannot be known. */
    needFor: async (question: Question): Promise<Need | null> => {
      if (world.isRemote() || !estimates.isReady()) return null;
      const known = estimates.known(question);
      return known ?? needOf(await estimates.ask(question).catch(() => null), null);
    },
    /** What the engine's allocator said of it; null: that is not known. */
    estimated: (upstreamId: string): Estimate | null => {
      const model = modelOf(upstreamId);
      return model ? estimates.estimated(questionFor(model)) : null;
    },
    /** What it took once it was loaded with the present settings, by their estimate, which may still be asked. */
    noteMeasured: async (upstreamId: string, measured: (estimate: Estimate | null) => ByDevice): Promise<void> => {
      const model = modelOf(upstreamId);
      if (!model) return;
      const [question, settings, tokens] = [questionFor(model), settingsOf(model), contextOf(model)];
      if (!world.isRemote() && estimates.isReady() && !estimates.known(question)) await askFor(question, false);
      const bytes = measured(estimates.estimated(question));
      estimates.noteMeasured(question, bytes);
      bounds.note(settings, tokens, bytes);
    },
    /** What it takes at most, by what it took with another context; null: that is not known. */
    bound: (upstreamId: string): Need | null => {
      const model = modelOf(upstreamId);
      return model ? needOf(null, bounds.of(settingsOf(model), contextOf(model))) : null;
    },
  };
}

type World = ReturnType<typeof createWorld>;

/** The models of the newest snapshot, with what they would be loaded with. */
function createWorld() {
  let models: readonly CachedModel[] = [];
  let preset: PresetFile | null = null;
  let isRemote = false;
  const valuesOf = ({ upstreamId }: CachedModel): ReadonlyMap<string, string> =>
    preset ? effectiveValues(preset, upstreamId) : new Map();
  return {
    see: ({ rpc }: Desired, { cache, preset: found }: Observed): void => {
      isRemote = rpc.mode === "rpc" && rpc.workers.length > 0;
      if (cache.state === "unknown" || found.state === "unknown") return;
      models = cache.value.models;
      preset = found.value;
    },
    seePreset: (found: PresetFile): void => {
      preset = found;
    },
    /** Models run on workers, which have the memory. */
    isRemote: () => isRemote,
    /** Those of the document that are in the cache, by the router's ids. */
    named: (desired: Desired): string[] => desired.models.flatMap(({ id }) => findCached(models, id)?.upstreamId ?? []),
    modelOf: (upstreamId: string): CachedModel | undefined => {
      const model = findRouted(models, upstreamId);
      return model?.complete === true ? model : undefined;
    },
    questionFor: (model: CachedModel, overrides: Overrides = {}): Question =>
      questionOf(model, new Map([...valuesOf(model), ...Object.entries(overrides)])),
    /** In force, in tokens. */
    contextOf: (model: CachedModel): number =>
      contextInForce(ctxSizeIn(valuesOf(model)), model.nCtxTrain, null) ?? contextStep,
  };
}

const ignore = (): void => undefined;
const remote = "RPC workers have the memory, which is not estimated";
const estimating: FitsFact = { reason: "Estimating", message: "The engine is being asked what it needs." };
