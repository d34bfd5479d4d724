// What models take of memory and may take, wired to the engine in use and to the newest pass.
import { steadyNow } from "../core/steady.ts";
import { listDevices } from "../engines/llama/devices.ts";
import { findFitTool, runFitTool } from "../engines/llama/fit-params.ts";
import { machineMemory } from "../engines/process/memory.ts";
import { createHostReader } from "../memory/host.ts";
import { createMemory, type Memory } from "../memory/memory.ts";
import { createModelMemory } from "../memory/model-memory.ts";
import { createSpace } from "../memory/space.ts";
import { parsePreset } from "../plan/preset-file.ts";
import type { Base } from "./events.ts";
import type { Machine } from "./machine.ts";
import type { State } from "./state.ts";

export type MemoryFacts = ReturnType<typeof createMemoryFacts>;

/** To be created before what listens to passes and takes the needs of that pass. */
export function createMemoryFacts(
  parts: Base & Pick<State, "memoryBook" | "store"> & Pick<Machine, "engine" | "router">,
) {
  const { settings, events, warn, engine, memoryBook, store, router } = parts;
  const { stateDir, environment } = settings;
  const over = new AbortController();
  const reader = createHostReader();
  const { instances } = router;
  const space = createSpace({ reader, settings: () => store.current().document.memory, instances, now: steadyNow });
  const memory: Memory = createMemory({
    book: memoryBook,
    findTool: async () => {
      const server = engine.path();
      return server === null ? undefined : findFitTool(server);
    },
    run: (tool, args) => runFitTool(tool, args, { stateDir, environment, signal: over.signal }),
    devices: () => models.readDevices(),
    mainMemory: machineMemory,
    limits: space.limits,
    isLoading: () => {
      const models = router.models();
      return models.state === "known" && models.value.some(({ value }) => value === "loading");
    },
    onKnown: (left) => events.emit("memoryKnown", left),
    warn,
  });
  const models = createModelMemory({
    space,
    reader,
    facts: memory,
    instances,
    listDevices: async () => {
      const server = engine.path();
      if (server === null) return [];
      return listDevices(server, environment).catch((error: unknown) => {
        warn("the devices of the engine were not listed", { error: String(error) });
        return [];
      });
    },
  });
  events.on("passed", ({ desired, observed }) => {
    memory
      .see(desired.document, observed)
      .catch((error: unknown) => warn("what models take of memory was not looked up", { error: String(error) }));
  });
  events.on("actionSettled", ({ action }) => {
    const { loadedPreset } = router.snapshot();
    if (action.kind === "router.reload" && loadedPreset !== null) memory.seePreset(parsePreset(loadedPreset));
  });
  const close = async (): Promise<void> => {
    over.abort();
    await memory.close();
  };
  return { ...memory, models, close };
}
