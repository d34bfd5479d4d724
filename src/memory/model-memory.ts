// What the scheduler asks about memory: what loaded models take, why one does not fit, and whether a load ran out of it.
import { GatewayError } from "../core/errors.ts";
import { isMemoryShortage } from "../core/load-output.ts";
import { memoryText } from "../core/memory-text.ts";
import type { EngineDevice } from "../engines/llama/devices.ts";
import type { Instances } from "../engines/llama/instances.ts";
import { placeOf, remedyText } from "./fits.ts";
import type { HostReader } from "./host.ts";
import { measuredBytes } from "./measure.ts";
import type { Memory } from "./memory.ts";
import { type ByDevice, fitsIn, host, leftBeside, type Need, scarcest } from "./need.ts";
import type { Space } from "./space.ts";

const noBytes: ByDevice = new Map();

export type ModelMemory = ReturnType<typeof createModelMemory>;

export function createModelMemory(options: {
  readonly space: Space;
  readonly reader: Pick<HostReader, "kills" | "held" | "files">;
  readonly facts: Pick<
    Memory,
    "need" | "bound" | "needFor" | "questionWith" | "estimated" | "remedy" | "largest" | "noteMeasured"
  >;
  readonly instances: Pick<Instances, "list" | "get" | "detachedUsers">;
  /** Those beside main memory. */
  readonly listDevices: () => Promise<readonly EngineDevice[]>;
}) {
  const { space, reader, facts, instances } = options;
  let needs = new Map<string, Need | null | undefined>();
  let killsBefore = 0;
  let devicesBefore: readonly EngineDevice[] = [];

  /** Placement asks for it at every event, and a question is as long as a model's settings. */
  function need(id: string): Need | null | undefined {
    if (needs.has(id)) return needs.get(id);
    // First: what is free depends on the needs of all loaded models, and this may be one of them.
    needs.set(id, facts.need(id, false));
    if (needs.get(id) !== undefined) return needs.get(id);
    // A load does not wait for the answer where there is enough memory whatever that is.
    const bound = facts.bound(id);
    needs.set(id, bound && fitsIn(bound.bytes, freeNow()) ? bound : facts.need(id));
    return needs.get(id);
  }

  /** What was needed at first, or what it holds where that is more: the engine keeps prompts, as many as come. */
  function taken(id: string): ByDevice {
    const { pid = null } = instances.get(id) ?? {};
    const bytes = need(id)?.bytes ?? noBytes;
    const held = pid === null ? 0 : space.held(pid);
    return held <= (bytes.get(host) ?? 0) ? bytes : new Map([...bytes, [host, held]]);
  }

  function takenByAll(): ByDevice {
    const sum = new Map<string, number>();
    for (const { id } of instances.list())
      for (const [device, bytes] of taken(id)) sum.set(device, (sum.get(device) ?? 0) + bytes);
    return sum;
  }

  function freeNow(): ByDevice {
    space.refresh();
    return leftBeside(space.limits(), [takenByAll()]);
  }

  async function readDevices(): Promise<readonly EngineDevice[]> {
    const taken = takenByAll();
    const list = await options.listDevices();
    space.seeDevices(list, taken);
    return list;
  }

  /** With these in place of its own settings; waits for the answer. Null: that cannot be known. */
  async function needWith(id: string, settings: Readonly<Record<string, string>>): Promise<Need | null> {
    const question = facts.questionWith(id, settings);
    return question && facts.needFor(question);
  }

  /** It costs the start of a process. */
  function takesDevices(id: string): boolean {
    return [...(facts.estimated(id)?.keys() ?? [])].some((name) => name !== host);
  }

  return {
    readDevices,
    /** More is known of models, their settings are others, or their processes have ended. */
    refresh: (): void => {
      needs = new Map();
      space.refresh();
    },
    taken,
    need: (id: string): ByDevice | null | undefined => {
      const known = need(id);
      return known ? known.bytes : known;
    },
    limits: space.limits,
    shares: space.shares,
    hasLeftovers: (): boolean => instances.detachedUsers() > 0,
    /** Does not wait for the search of what would fit, which takes up to a second. */
    refusal: (id: string, pinned: readonly ByDevice[]): string => {
      const left = leftBeside(space.limits(), pinned);
      const remedy = facts.remedy(id, left);
      const text = remedy === undefined ? "the engine is being asked what would fit" : remedy && remedyText(remedy);
      return `${sumText(need(id), left)}${text === null ? "" : `: ${text}`}`;
    },
    /** Errors: `too_large` for a context with which the model would not fit alone, where that can be known. */
    requireContext: async (id: string, tokens: number): Promise<void> => {
      const asked = await needWith(id, { "ctx-size": String(tokens) });
      const limits = space.limits();
      if (!asked || fitsIn(asked.bytes, limits)) return;
      const most = await facts.largest(id, limits, tokens);
      const remedy = most === null ? "" : `: a context of ${most} would fit`;
      throw new GatewayError("too_large", `${id} with a context of ${tokens} ${sumText(asked, limits)}${remedy}`);
    },
    /** Errors: `too_large` where it would not fit beside the loaded models, with so many tokens, where that can be known. */
    requireRoom: async (id: string, tokens: number): Promise<void> => {
      const asked = await needWith(id, { "ctx-size": String(tokens) });
      const free = freeNow();
      if (!asked || fitsIn(asked.bytes, free)) return;
      throw new GatewayError(
        "too_large",
        `${id} ${sumText(asked, free)} beside the loaded models: unload some of these`,
      );
    },
    /** A load is about to begin. */
    begin: (id: string): Promise<void> | null => {
      killsBefore = reader.kills();
      devicesBefore = [];
      if (!takesDevices(id)) return null;
      return readDevices().then((list) => void (devicesBefore = list));
    },
    /** Of a load that ended early, with its last output: what it needed and what there is; null: memory was not short. */
    shortage: (id: string, output: string): string | null => {
      if (!isMemoryShortage(output.split("\n")) && reader.kills() === killsBefore) return null;
      return `it ${sumText(need(id), freeNow())}`;
    },
    /** Of a model that was just loaded: keeps what that took. */
    measure: async (id: string): Promise<void> => {
      const { pid = null } = instances.get(id) ?? {};
      const own = pid === null ? null : reader.held(pid);
      // It has ended, or this is not Linux.
      if (pid === null || own === null) return;
      const files = reader.files(pid);
      const after = takesDevices(id) ? await readDevices() : [];
      const beside = differences(devicesBefore, after);
      await facts.noteMeasured(id, (estimate) => new Map([...measuredBytes({ own, files }, estimate), ...beside]));
    },
  };
}

/** What was taken of each device in between. */
function differences(before: readonly EngineDevice[], after: readonly EngineDevice[]): ByDevice {
  const free = new Map(after.map(({ name, freeBytes }) => [name, freeBytes]));
  const taken = before.map(({ name, freeBytes }) => [name, freeBytes - (free.get(name) ?? freeBytes)] as const);
  return new Map(taken.filter(([, bytes]) => bytes > 0));
}

/** Of the device that lacks the most, else of main memory. */
function sumText(need: Need | null | undefined, left: ByDevice): string {
  if (!need) return `needs an unknown amount of memory, and ${memoryText(left.get(host) ?? 0)} are free`;
  const usual = { device: host, needed: need.bytes.get(host) ?? 0, limit: left.get(host) ?? 0 };
  const { device, needed, limit } = scarcest(need.bytes, left) ?? usual;
  return `needs ${memoryText(needed)} of ${placeOf(device)}, and ${memoryText(limit)} are free for it`;
}
