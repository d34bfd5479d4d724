// The changes that a call may make. Each is one edit of the document, a wake of the loop, and a wait for the outcome; the routes
// only translate.
import { GatewayError } from "../core/errors.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { addAliasEdit, removeAliasEdit } from "./aliases.ts";
import { type BenchDeps, benchCommand } from "./bench.ts";
import { contextSizeEdit } from "./context-size.ts";
import { type PullDeps, pullEdit } from "./pull.ts";
import { type RemoveDeps, removeEdit } from "./remove.ts";
import { rosterEdits } from "./roster.ts";

export type EditsDeps = PullDeps & RemoveDeps & BenchDeps & { readonly scheduler: Pick<Scheduler, "unload"> };

/** They resolve when the outcome is in force. Common errors: `model_not_found`, `invalid_request`, `suspended`, `wait_timeout`. */
export type Edits = ReturnType<typeof createEdits>;

export function createEdits(deps: EditsDeps) {
  return {
    setContextSize: contextSizeEdit(deps),
    eject: ejectEdit(deps),
    bench: benchCommand(deps),
    remove: removeEdit(deps),
    pull: pullEdit(deps),
    addAlias: addAliasEdit(deps),
    removeAlias: removeAliasEdit(deps),
    ...rosterEdits(deps),
  };
}

/** Drains and unloads a model; its files stay. The document does not change: requests decide what is loaded. */
function ejectEdit({ catalog, scheduler, status }: Pick<EditsDeps, "scheduler" | "catalog" | "status">) {
  return async (name: string): Promise<{ readonly id: string }> => {
    const model = catalog.resolve(name);
    // Continues without its client: a drain that ended with it would cut a response.
    await scheduler.unload(model.upstreamId, new AbortController().signal);
    const { router } = status();
    if (router.phase === "ready" && !router.connected)
      throw new GatewayError("router_unavailable", `the router does not respond: ${model.id} may still be loaded`);
    return { id: model.id };
  };
}
