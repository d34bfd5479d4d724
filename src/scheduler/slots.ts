// What the router's list says of a model's process: how many requests it works on at once, and by what settings one load is
// told from another. Reads, decides nothing.
import type { Instance } from "../engines/llama/instances.ts";
import type { Router } from "../engines/llama/router.ts";
import type { RouterModel } from "../plan/observed.ts";

/** Slots that the engine makes where it is not told how many. */
const usualSlots = 4;
/** Twice its slots, so that it has the next request when one ends; a few more cost nothing. */
const fewest = 8;

function listed(router: Pick<Router, "snapshot">, id: string): RouterModel | undefined {
  const { models } = router.snapshot();
  return models.state === "known" ? models.value.find((model) => model.id === id) : undefined;
}

/** Requests that a model's process works on at once. */
export function createSlots(router: Pick<Router, "snapshot">): (instance: Instance) => number {
  const known = new WeakMap<Instance, number>();
  return (instance) => {
    const earlier = known.get(instance);
    if (earlier !== undefined) return earlier;
    const args = listed(router, instance.id)?.args ?? [];
    const given = args.includes("--parallel") ? Number(args[args.indexOf("--parallel") + 1]) : 0;
    const slots = given > 0 ? given : usualSlots;
    known.set(instance, slots);
    return slots;
  };
}

/**
 * Requests that it is given at once; the others wait with the gateway, where they stand behind other models and are cut by no
 * change.
 */
export function atOnceFor(slots: number): number {
  return Math.max(fewest, 2 * slots);
}

/** Another one: the same load may end otherwise. Null where nobody knows the file or the settings just now. */
export function identityOf(router: Pick<Router, "snapshot">, id: string, file: string | null): string | null {
  const model = listed(router, id);
  if (!model || file === null) return null;
  const port = model.args.indexOf("--port");
  return JSON.stringify([file, model.args.filter((_, at) => port < 0 || (at !== port && at !== port + 1))]);
}
