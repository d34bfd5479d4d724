// What models take of memory, wired to the engine in use and to the newest pass.
import { listDevices } from "../engines/llama/devices.ts";
import { findFitTool, runFitTool } from "../engines/llama/fit-params.ts";
import { machineMemory } from "../engines/process/memory.ts";
import { createMemory, type Memory } from "../memory/memory.ts";
import type { Base } from "./events.ts";
import type { Machine } from "./machine.ts";
import type { State } from "./state.ts";

/** To be created before what listens to passes and takes the needs of that pass. */
export function createMemoryFacts(parts: Base & Pick<State, "memoryBook"> & Pick<Machine, "engine">) {
  const { settings, events, warn, engine, memoryBook } = parts;
  const { stateDir, environment } = settings;
  const over = new AbortController();
  const memory: Memory = createMemory({
    book: memoryBook,
    findTool: async () => {
      const server = engine.path();
      return server === null ? undefined : findFitTool(server);
    },
    run: (tool, args) => runFitTool(tool, args, { stateDir, environment, signal: over.signal }),
    devices: async () => {
      const server = engine.path();
      return server === null ? [] : listDevices(server, environment);
    },
    mainMemory: machineMemory,
    onKnown: (left) => events.emit("memoryKnown", left),
    warn,
  });
  events.on("passed", ({ desired, observed }) => {
    memory
      .see(desired.document, observed)
      .catch((error: unknown) => warn("what models take of memory was not looked up", { error: String(error) }));
  });
  const close = async (): Promise<void> => {
    over.abort();
    await memory.close();
  };
  return { ...memory, close };
}
