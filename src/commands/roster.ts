// The RPC mode and its workers: fields of the document, in force on the router when the call responds.
import type { RpcRoster as RpcRosterBody } from "../../schemas/admin.ts";
import { GatewayError } from "../core/errors.ts";
import { equalJson, type Frozen } from "../core/json.ts";
import { foldWorker, workerProblem } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import { workersByAddress } from "../plan/workers.ts";
import type { Pass } from "../reconcile/loop.ts";
import { type Call, untilInForce, type WaitDeps } from "./in-force.ts";

/** A probe takes 4 s without a response; a name service may take longer. */
const firstLookMs = 6_000;

type Roster = Pick<Desired["rpc"], "mode" | "workers">;

export type RpcRoster = Omit<Frozen<RpcRosterBody>, "ok">;

export function rosterEdits(deps: WaitDeps & { readonly store: DesiredStore }) {
  async function change(make: (rpc: Roster) => Roster, call: Call): Promise<RpcRoster> {
    const { generation } = await deps.store.edit(({ document: { rpc } }) => {
      const next = make(rpc);
      return equalJson(rpc.workers, next.workers) && rpc.mode === next.mode
        ? null
        : { patch: { rpc: { mode: next.mode, workers: [...next.workers] } } };
    }, call);
    const inForce = await untilInForce(deps, { generation, call });
    const { plan, desired, observed } = await untilLookedAt(deps, inForce, call);
    const problem = plan.findings.get("rpc");
    const { mode, workers } = desired.document.rpc;
    if (problem !== undefined && mode === "rpc") throw new GatewayError("not_supported", problem);
    return { mode, workers, notInUse: unusable({ desired, observed }) };
  }

  return {
    setRpcMode: (mode: Roster["mode"], call: Call) =>
      change(({ workers }) => {
        if (mode === "rpc" && workers.length === 0)
          throw new GatewayError("invalid_request", "there are no workers: add one first (POST /api/rpc/workers)");
        return { mode, workers };
      }, call),
    addWorkers: async (added: readonly string[], call: Call) => {
      const checked = added.map(checkedWorker);
      return change(({ mode, workers }) => ({ mode, workers: withoutRepeats([...workers, ...checked]) }), call);
    },
    removeWorkers: async (removed: readonly string[], call: Call) => {
      const gone = new Set(removed.map(checkedWorker).map(foldWorker));
      return change(({ mode, workers }) => {
        const left = workers.filter((worker) => !gone.has(foldWorker(worker)));
        // Without workers there is nothing that could be distributed.
        return { mode: left.length === 0 ? "single" : mode, workers: left };
      }, call);
    },
  };
}

function checkedWorker(text: string): string {
  const worker = text.trim();
  const problem = workerProblem(worker);
  if (problem !== null) throw new GatewayError("invalid_request", problem);
  return worker;
}

function withoutRepeats(workers: readonly string[]): string[] {
  // Of several spellings the first counts, at its place.
  const first = new Map<string, string>();
  for (const worker of workers) if (!first.has(foldWorker(worker))) first.set(foldWorker(worker), worker);
  return [...first.values()];
}

/** Waits for the first probe of each worker, but not for long: the response names those that take longer. */
async function untilLookedAt(deps: WaitDeps, inForce: Pass, call: Call): Promise<Pass> {
  try {
    return await deps.loop.waitFor({
      generation: inForce.desired.generation,
      signal: call.signal,
      timeoutMs: firstLookMs,
      test: ({ observed: { workers } }) => workers.every(({ verdict }) => verdict !== "unprobed"),
    });
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "wait_timeout") throw error;
    return deps.loop.last() ?? inForce;
  }
}

function unusable({ desired, observed }: Pick<Pass, "desired" | "observed">): RpcRoster["notInUse"] {
  const seen = workersByAddress(observed.workers);
  return desired.document.rpc.workers.flatMap((address) => {
    const { verdict, reason, message } = seen.get(foldWorker(address)) ?? notSeen;
    return verdict === "up" ? [] : [{ address, reason, message }];
  });
}

const notSeen = { verdict: "unprobed", reason: "NotProbed", message: "it was not probed yet" } as const;
