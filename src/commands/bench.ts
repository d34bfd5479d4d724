// Measures a model with the llama-bench of the engine in use, while the model is unloaded.
import type { BenchBody } from "../../schemas/admin.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { createSerial } from "../core/serial.ts";
import { toolBeside } from "../engines/install/locate.ts";
import { benchSettings, readBench } from "../engines/llama/bench.ts";
import type { EngineSource } from "../engines/llama/engine-source.ts";
import { runEngineTool, type ToolPlace } from "../engines/llama/tool.ts";
import type { ModelMemory } from "../memory/model-memory.ts";
import type { CachedModel } from "../plan/observed.ts";
import { effectiveValues } from "../plan/preset-file.ts";
import type { Loop } from "../reconcile/loop.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";

export interface BenchDeps {
  readonly catalog: Pick<Catalog, "resolve">;
  readonly scheduler: Pick<Scheduler, "whileUnloaded">;
  readonly engine: Pick<EngineSource, "path">;
  readonly loop: Pick<Loop, "last">;
  readonly memory: { readonly models: Pick<ModelMemory, "requireRoom"> };
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stopping: AbortSignal;
}

/** Of a prompt, which is the longer of its two measurements. */
const tokens = 512;

/**
 * One at a time: two would measure each other.
 * Errors: `model_not_found`, `too_large`, `engine_missing`, `engine_refused`, `engine_failed`, `cancelled`.
 */
export function benchCommand({ catalog, scheduler, engine, loop, memory, stopping, ...where }: BenchDeps) {
  const inTurn = createSerial();

  /** Where the preset cannot be read, the models have no settings. */
  function valuesOf({ upstreamId }: CachedModel): ReadonlyMap<string, string> {
    const preset = loop.last()?.observed.preset;
    return preset?.state === "known" ? effectiveValues(preset.value, upstreamId) : new Map();
  }

  async function measure(model: CachedModel, tool: string, place: ToolPlace): Promise<BenchBody> {
    await memory.models.requireRoom(model.upstreamId, tokens);
    const values = valuesOf(model);
    const file = values.get("model") ?? model.files[0] ?? "";
    const help = await runEngineTool(tool, ["--help"], place);
    const { args, settings, leftOut } = benchSettings(values, help);
    const output = await runEngineTool(tool, ["--model", file, ...args, "--output", "json"], place);
    const result = readBench(output);
    if (result) return { model: model.id, file, ...result, settings, leftOut: [...leftOut], tests: [...result.tests] };
    throw new GatewayError("engine_failed", "llama-bench printed no measurement");
  }

  return (name: string, left: AbortSignal): Promise<BenchBody> =>
    inTurn(async () => {
      const model = catalog.resolve(name);
      const server = engine.path();
      const tool = server && (await toolBeside(server, "llama-bench"));
      if (tool === null)
        throw new GatewayError("engine_missing", `there is no llama-bench beside ${server ?? "a llama-server"}`);
      const signal = AbortSignal.any([left, stopping]);
      return scheduler.whileUnloaded(model.upstreamId, signal, () => measure(model, tool, { ...where, signal }));
    });
}
