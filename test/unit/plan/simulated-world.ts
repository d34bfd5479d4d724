// A machine in memory: actions change it as they change a real one, and it drifts as real ones do. It breaks (throws) where
// the real one would come to harm: a preset that ends the router, a phantom model, a file deleted that is not ours.

import { selectFiles } from "../../../src/cache/layout/select.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { inferTag, parseModelId, repoOf } from "../../../src/core/ids.ts";
import type { Desired } from "../../../src/desired/document/document.ts";
import { type Action, type BackoffEntry, laneOf, type Plan } from "../../../src/plan/actions.ts";
import {
  type FormerRevision,
  findCached,
  type InventoryEntry,
  type Observed,
  type RouterSnapshot,
  restingSpeech,
  type SourceFile,
} from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { parsePreset } from "../../../src/plan/preset-file.ts";
import { coversEntry, namedEntries } from "../../../src/plan/removals.ts";
import { createBackoffBook } from "../../../src/reconcile/pacing.ts";
import { readAsRouter } from "./router-reading.ts";
import {
  absolutePath,
  cacheOf,
  inventoryEntry,
  known,
  mainCommit,
  otherCommit,
  restingRouter,
  silenceLimitMs,
  type WorldFile,
  workersOf,
} from "./world.ts";

/** Paths by repository. */
export type Hub = Readonly<Record<string, readonly string[]>>;

export type Drift =
  | { readonly kind: "crash" | "hang" | "cache.restored" | "inventory.lost" }
  | { readonly kind: "file.lost" | "model.loaded"; readonly nth: number }
  | { readonly kind: "file.added"; readonly file: WorldFile }
  | { readonly kind: "preset.edited"; readonly text: string; readonly nth: number }
  | { readonly kind: "preset.emptied" }
  | { readonly kind: "folder.unreadable"; readonly repo: string };

export interface SimulatedWorld {
  desired: Desired;
  observe(): Observed;
  plan(): Plan;
  /** Executes the first action of each lane, the control lane's first. */
  step(plan: Plan): void;
  /** Whether it succeeded. */
  execute(action: Action): boolean;
  backoff(): ReadonlyMap<string, BackoffEntry>;
  /** ms. */
  now(): number;
  /** Lets the time pass until then. */
  waitUntil(at: number): void;
  drift(drift: Drift): void;
  /** Plans and executes until nothing is planned but what has failed for good. Throws after `bound` rounds. */
  settle(bound: number): { readonly plan: Plan; readonly rounds: number };
  files(): readonly WorldFile[];
}

export function createSimulatedWorld(options: {
  readonly desired: Desired;
  readonly hub: Hub;
  readonly files: readonly WorldFile[];
  readonly inventory: readonly InventoryEntry[];
  readonly preset: string;
  /** A router of before there was a live reload answers it, and changes nothing. */
  readonly reloads: boolean;
}): SimulatedWorld {
  let files = [...options.files];
  let inventory = [...options.inventory];
  let presetText = options.preset;
  let router: RouterSnapshot = restingRouter;
  let loaded = new Set<string>();
  let unreadable: string[] = [];
  let now = 1_000_000;
  const book = createBackoffBook(() => now);

  const scan = lastOnly(cacheOf);
  const parse = lastOnly(parsePreset);
  const cache = () => scan(files, unreadable, inventory);
  const restart = (): void => {
    loaded = new Set();
    const models = known(readAsRouter(presetText, cache().models, loaded));
    router = {
      ...router,
      phase: "ready",
      pid: 1,
      loadedPreset: presetText,
      loadedCache: cache().signature,
      freshlyStarted: true,
      silentSince: null,
      models,
    };
  };

  const world: SimulatedWorld = {
    desired: options.desired,
    files: () => files,
    observe: () => ({
      workers: workersOf(world.desired),
      cache: known(cache()),
      preset: known(parse(presetText)),
      inventory,
      freeBytes: known(1e12),
      speech: { transcription: restingSpeech, synthesis: restingSpeech },
      sources: new Map(
        world.desired.models.flatMap(({ source }) => (source === undefined ? [] : [[source, sourceAt(source)]])),
      ),
      router,
      documentFiles: new Map(),
    }),
    plan: () => {
      noteLeft();
      return plan(world.desired, world.observe(), { now, backoff: book.entries(), silenceLimitMs });
    },
    step: ({ actions }) => {
      for (const lane of ["control", "transfer"]) {
        const action = actions.find(({ kind }) => laneOf(kind) === lane);
        if (action) execute(action);
      }
      now += 100;
    },
    execute,
    backoff: book.entries,
    now: () => now,
    waitUntil: (at) => {
      now = Math.max(now, at);
    },
    drift,
    settle: (bound) => {
      for (let rounds = 0; rounds <= bound; rounds++) {
        const found = world.plan();
        if (found.actions.length === 0) {
          const next = Math.min(
            ...found.held.flatMap((held) => held.until ?? []),
            (router.silentSince ?? Number.POSITIVE_INFINITY) + silenceLimitMs,
          );
          if (!Number.isFinite(next)) return { plan: found, rounds };
          now = Math.max(now + 1, next);
        }
        world.step(found);
      }
      throw new Error(
        `not settled after ${bound} rounds: ${JSON.stringify(world.plan().actions.map(({ kind, key, reason }) => ({ kind, key, reason })))}`,
      );
    },
  };
  return world;

  /** As the gateway does after each pass. */
  function noteLeft(): void {
    const names = namedEntries(world.desired, world.observe());
    if (names === null) return;
    if (inventory.every(({ id, leftAt }) => names.has(id) === (leftAt === undefined))) return;
    inventory = inventory.map((entry) => {
      const { leftAt, ...rest } = entry;
      return names.has(entry.id) ? rest : { ...rest, leftAt: leftAt ?? new Date(now).toISOString() };
    });
  }

  function execute(action: Action): boolean {
    try {
      run(action);
      book.succeeded(action);
      return true;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      book.failed(action, error);
      return false;
    }
  }

  function run(action: Action): void {
    switch (action.kind) {
      case "model.pull":
        return pull(action.model, action.revision);
      case "model.import":
        return add(action.model, [importedName(action.model, action.source)], "main", sourceAt(action.source));
      case "model.remove":
        return action.requested ? removeRequested(action.model) : remove(action.model);
      case "cache.gc":
        throw new Error("collecting is never planned");
      case "preset.write":
        presetText = action.text;
        return;
      case "router.start":
      case "router.restart":
        return restart();
      case "router.reload":
        return reload(action.disrupts);
      case "voice.pull":
      case "transcription.pull":
      case "speech.start":
      case "speech.stop":
        throw new Error("no document of these tests has speech");
      default:
        return action satisfies never;
    }
  }

  function pull(id: string, revision: string | undefined): void {
    const parsed = parseModelId(id);
    const tree = parsed ? options.hub[repoOf(parsed)] : undefined;
    if (!parsed || !tree) throw new GatewayError("hub_not_found", `${id} is not on the hub`);
    const { model } = selectFiles(
      repoOf(parsed),
      parsed.tag,
      tree.map((path) => ({ path, size: 1000, oid: "" })),
    );
    add(
      id,
      model.map((file) => file.path),
      revision,
    );
  }

  function add(id: string, paths: readonly string[], revision = "main", source?: SourceFile): void {
    const commit = revision === "main" ? mainCommit : otherCommit;
    const repo = id.slice(0, id.indexOf(":"));
    const isNew = (file: WorldFile): boolean =>
      !(file.repo === repo && file.commit === commit && paths.includes(file.path));
    // A blob is one file, whichever revisions link it: here it goes by the path.
    const healed = files.map((file) =>
      file.repo === repo && paths.includes(file.path)
        ? { repo, path: file.path, commit: file.commit, size: 1000 }
        : file,
    );
    files = [...healed.filter(isNew), ...paths.map((path) => ({ repo, path, commit, size: 1000 }))];
    const known = inventory.find((entry) => entry.id === id);
    const keep = known?.keep ?? false;
    inventory = [
      ...inventory.filter((entry) => entry.id !== id),
      {
        ...inventoryEntry(id, paths, keep),
        revision,
        commit,
        ...(known && { former: revisionsOf(known) }),
        ...(source && { source: { path: source.path, stamp: source.stamp } }),
      },
    ];
  }

  function remove(id: string): void {
    const entry = inventory.find((other) => other.id === id);
    if (!entry) throw new Error(`${id} is removed, but is not in the inventory`);
    if (entry.keep) throw new Error(`${id} is removed, but kept`);
    const links = findCached(cache().models, id)?.files ?? [];
    for (const file of files.filter((other) => links.includes(absolutePath(other)))) {
      if (!entry.files.some(({ path }) => path === file.path))
        throw new Error(`${file.path} is deleted, but is not ours`);
    }
    const commits = inventory
      .filter((other) => other.repo === entry.repo)
      .flatMap((other) => revisionsOf(other).map(({ commit }) => commit));
    const paths = revisionsOf(entry).flatMap((revision) => revision.files.map(({ path }) => path));
    files = files.filter(
      (file) => file.repo !== entry.repo || !commits.includes(file.commit) || !paths.includes(file.path),
    );
    inventory = inventory.filter((other) => other !== entry);
  }

  function removeRequested(id: string): void {
    const removal = world.desired.removals.find((other) => other.id === id);
    if (!removal) throw new Error(`${id} is removed, but nobody asked for it`);
    files = files.filter((file) => file.repo !== removal.repo || !removal.files.includes(file.path));
    inventory = inventory.filter((entry) => !coversEntry(removal, entry));
    world.desired = { ...world.desired, removals: world.desired.removals.filter((other) => other !== removal) };
  }

  function reload(announced: readonly string[]): void {
    if (options.reloads && router.models.state === "known") {
      // The order of options does not count: a size that moves from `[*]` to a section ends nothing.
      const settings = (args: readonly string[]): string => args.toSorted().join(" ");
      const before = new Map(router.models.value.map((model) => [model.id, settings(model.args)]));
      const listed = readAsRouter(presetText, cache().models, new Set());
      const stays = (id: string): boolean =>
        listed.some((model) => model.id === id && settings(model.args) === before.get(id));
      for (const id of loaded)
        if (!stays(id) && !announced.includes(id)) throw new Error(`the reload ended ${id} unannounced`);
      loaded = new Set([...loaded].filter(stays));
      router = { ...router, models: known(readAsRouter(presetText, cache().models, loaded)) };
    }
    router = { ...router, loadedPreset: presetText, loadedCache: cache().signature, freshlyStarted: false };
  }

  function drift(change: Drift): void {
    switch (change.kind) {
      case "crash":
        if (router.phase !== "ready") return;
        loaded = new Set();
        router = { ...restingRouter, crashes: [...router.crashes, now] };
        return;
      case "hang":
        if (router.phase === "ready")
          router = { ...router, silentSince: now, models: { state: "unknown", why: "no answer" } };
        return;
      case "file.lost":
        files = files.filter((_, index) => index !== change.nth % Math.max(1, files.length));
        return;
      case "file.added":
        files = [...files.filter((file) => absolutePath(file) !== absolutePath(change.file)), change.file];
        return;
      case "preset.emptied":
        presetText = "";
        return;
      case "preset.edited": {
        const lines = presetText.split("\n");
        presetText = lines.toSpliced(change.nth % (lines.length + 1), 0, change.text).join("\n");
        return;
      }
      case "model.loaded": {
        if (router.models.state === "unknown") return;
        const id = router.models.value[change.nth % Math.max(1, router.models.value.length)]?.id;
        if (id === undefined) return;
        loaded.add(id);
        router = {
          ...router,
          models: known(router.models.value.map((model) => (model.id === id ? { ...model, value: "loaded" } : model))),
        };
        return;
      }
      case "folder.unreadable":
        unreadable = [change.repo];
        return;
      case "cache.restored":
        unreadable = [];
        return;
      case "inventory.lost":
        inventory = [];
        return;
      default:
        change satisfies never;
    }
  }
}

/** Remembers the last answer: a world is observed many times between two changes. */
function lastOnly<In extends readonly unknown[], Out>(make: (...input: In) => Out): (...input: In) => Out {
  let last: { readonly input: In; readonly output: Out } | null = null;
  return (...input) => {
    if (!last?.input.every((value, index) => value === input[index])) last = { input, output: make(...input) };
    return last.output;
  };
}

function revisionsOf(entry: InventoryEntry): readonly FormerRevision[] {
  const { commit, files, former = [] } = entry;
  return [{ commit, files }, ...former];
}

function sourceAt(source: string): SourceFile & { readonly bytes: number } {
  return { path: `/sources/${source}`, stamp: "1000:0", bytes: 1000 };
}

/** As an import names the file, so that it is found under the id. */
function importedName(id: string, source: string): string {
  const parsed = parseModelId(id);
  const file = source.slice(source.lastIndexOf("/") + 1);
  if (!parsed || inferTag(file).toLowerCase() === parsed.tag.toLowerCase()) return file;
  const plain = `${parsed.name}-${parsed.tag}.gguf`;
  return inferTag(plain).toLowerCase() === parsed.tag.toLowerCase() ? plain : `${parsed.tag}.gguf`;
}
