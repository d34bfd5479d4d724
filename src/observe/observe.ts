// Takes the snapshot that the planner works on. Changes nothing; what cannot be read is unknown.
import { readFreeBytes } from "../cache/download/disk-space.ts";
import type { CacheScanner } from "../cache/scan/scan.ts";
import { GatewayError, reasonOf } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import type { EngineSource } from "../engines/llama/engine-source.ts";
import type { Router, RouterInputs } from "../engines/llama/router.ts";
import type { LoadFacts } from "../plan/load-record.ts";
import type { InventoryEntry, Knowable, Observed, SpeechObserved } from "../plan/observed.ts";
import { emptyPreset, type PresetFile, parsePreset } from "../plan/preset-file.ts";
import type { Workers } from "../rpc/workers.ts";
import { readIfPresent } from "../state/atomic-file.ts";
import { readDocumentFiles } from "./document-files.ts";

export type Observer = ReturnType<typeof createObserver>;

export function createObserver(options: {
  readonly scanner: CacheScanner;
  readonly cacheDir: string;
  readonly presetPath: string;
  readonly configPath: string;
  readonly desired: () => Desired;
  readonly router: Router;
  readonly inventory: () => readonly InventoryEntry[];
  readonly loads: () => LoadFacts;
  readonly engine: Pick<EngineSource, "state" | "look">;
  readonly speech: () => Promise<SpeechObserved>;
  /** Null if they are not watched. */
  readonly workers: Pick<Workers, "snapshot"> | null;
  /** The engine was replaced: failed actions may succeed with this one. */
  readonly onNewEngine: () => void;
}) {
  let documentFiles: Observed["documentFiles"] = new Map();
  return {
    observe: async (): Promise<Observed> => {
      const [cache, preset, freeBytes, speech, files] = await Promise.all([
        options.scanner.scan(),
        readPreset(options.presetPath),
        readFreeBytes(options.cacheDir),
        options.speech(),
        readDocumentFiles(options.configPath, options.desired(), documentFiles),
        options.router.refresh(),
        options.engine.look().then((isNew) => isNew && options.onNewEngine()),
      ]);
      ({ documentFiles } = files);
      return {
        cache,
        preset,
        freeBytes,
        speech,
        ...files,
        workers: options.workers?.snapshot() ?? [],
        inventory: options.inventory(),
        loads: options.loads(),
        router: routerNow(options),
      };
    },
  };
}

/** As it was last seen: nothing is asked. */
export function routerNow({
  router,
  engine,
}: {
  readonly router: Pick<Router, "snapshot">;
  readonly engine: Pick<EngineSource, "state">;
}): Observed["router"] {
  return { ...router.snapshot(), ...engine.state() };
}

/** What the router is about to read. Errors: `preset_unwritable`, `cache_unwritable` where it cannot be read. */
export async function routerInputs(presetPath: string, scanner: CacheScanner): Promise<RouterInputs> {
  return inputsIn({ preset: await readPreset(presetPath), cache: await scanner.scan() });
}

/** Errors: as `routerInputs`. */
export function inputsIn({ preset, cache }: Pick<Observed, "preset" | "cache">): RouterInputs {
  if (preset.state === "unknown") throw new GatewayError("preset_unwritable", preset.why);
  if (cache.state === "unknown") throw new GatewayError("cache_unwritable", cache.why);
  return { preset: preset.value.text, cache: cache.value.signature, repos: cache.value.whole };
}

export async function readPreset(path: string): Promise<Knowable<PresetFile>> {
  try {
    const text = await readIfPresent(path);
    return { state: "known", value: text === null ? emptyPreset : parsePreset(text) };
  } catch (error) {
    return { state: "unknown", why: `${path} cannot be read (${reasonOf(error)})` };
  }
}
