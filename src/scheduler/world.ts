// What the scheduler sees of the machine: read at each `observed` event, and the same until the next one.
import type { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Router } from "../engines/llama/router.ts";
import type { RouterModel } from "../plan/observed.ts";
import type { World } from "./state/types.ts";

export interface WorldSources {
  readonly router: Pick<Router, "snapshot" | "instances" | "isReady">;
  readonly gate: { refusal(): GatewayError | null };
  readonly modelsMax: () => number;
  /** Why there will be no router; null where there is one or will be. */
  readonly engineProblem: () => GatewayError | null;
  /** Whether the cache still holds a model, as far as is known. */
  readonly isCached: (id: string) => boolean;
  /** Whether the document keeps a model loaded. */
  readonly isPinned: (id: string) => boolean;
  /** Changes with the model's file; null: unknown. */
  readonly fileOf: (id: string) => string | null;
}

export interface WorldView {
  look(): World;
  /** Of the world that was looked at last. */
  instance(id: string): Instance | null;
}

export function createWorldView(sources: WorldSources): WorldView {
  const { router } = sources;
  let loaded: ReadonlyMap<string, Instance> = new Map();

  function list(): readonly RouterModel[] {
    const { models } = router.snapshot();
    return models.state === "known" ? models.value : [];
  }

  /** The same load under another identity may end otherwise. */
  function identity(id: string): string | null {
    const model = list().find((each) => each.id === id);
    const file = sources.fileOf(id);
    if (!model || file === null) return null;
    const port = model.args.indexOf("--port");
    return JSON.stringify([file, model.args.filter((_, at) => port < 0 || (at !== port && at !== port + 1))]);
  }

  return {
    look: () => {
      const refusal = sources.gate.refusal();
      loaded = new Map(router.instances.list().map((instance) => [instance.id, instance]));
      return {
        isReady: router.isReady(),
        listed: new Map(list().map(({ id, value }) => [id, value])),
        loaded,
        modelsMax: sources.modelsMax(),
        engineProblem: sources.engineProblem(),
        refusal,
        isPinned: sources.isPinned,
        isCached: sources.isCached,
        identity,
      };
    },
    instance: (id) => loaded.get(id) ?? null,
  };
}
