// The RPC mode and its workers: fields of the document, in force on the router when the call answers.
import { rpcSchema } from "../../../schemas/document.ts";
import { GatewayError } from "../../core/errors.ts";
import { foldWorker } from "../../core/worker-address.ts";
import type { Desired } from "../../desired/document.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Call, Edits, RpcRoster } from "./edits.ts";
import { untilInForce, type WaitDeps } from "./in-force.ts";

type Roster = Pick<Desired["rpc"], "mode" | "workers">;

export function rosterEdits(
  deps: WaitDeps & { readonly store: DesiredStore },
): Pick<Edits, "setRpcMode" | "addWorkers" | "removeWorkers"> {
  async function change(make: (rpc: Roster) => Roster, call: Call): Promise<RpcRoster> {
    const { generation } = await deps.store.edit(({ document: { rpc } }) => {
      const next = make(rpc);
      return isSame(rpc, next) ? null : { patch: { rpc: { mode: next.mode, workers: [...next.workers] } } };
    }, call.by);
    const { plan, desired } = await untilInForce(deps, { generation, call });
    const problem = plan.findings.get("rpc");
    const { mode, workers } = desired.document.rpc;
    if (problem !== undefined && mode === "rpc") throw new GatewayError("not_supported", problem);
    return { mode, workers };
  }

  return {
    setRpcMode: (mode, call) =>
      change(({ workers }) => {
        if (mode === "rpc" && workers.length === 0)
          throw new GatewayError("invalid_request", "there are no workers: add one first (POST /api/rpc/workers)");
        return { mode, workers };
      }, call),
    addWorkers: async (added, call) => {
      const checked = added.map(checkedWorker);
      return change(({ mode, workers }) => ({ mode, workers: withoutRepeats([...workers, ...checked]) }), call);
    },
    removeWorkers: async (removed, call) => {
      const gone = new Set(removed.map(checkedWorker).map(foldWorker));
      return change(({ mode, workers }) => {
        const left = workers.filter((worker) => !gone.has(foldWorker(worker)));
        // Without workers there is nothing that could be distributed.
        return { mode: left.length === 0 ? "single" : mode, workers: left };
      }, call);
    },
  };
}

const workerPattern = new RegExp(rpcSchema.properties.workers.items.pattern);

function checkedWorker(text: string): string {
  const worker = text.trim();
  const port = Number(/:(\d+)$/.exec(worker)?.[1]);
  if (!workerPattern.test(worker))
    throw new GatewayError(
      "invalid_request",
      `${JSON.stringify(text)} is no worker: HOST:PORT is expected, an IPv6 address in brackets`,
    );
  if (port < 1 || port > 65_535) throw new GatewayError("invalid_request", `${worker}: ${port} is no port`);
  return worker;
}

function withoutRepeats(workers: readonly string[]): string[] {
  return workers.filter((worker, at) => workers.findIndex((other) => foldWorker(other) === foldWorker(worker)) === at);
}

function isSame(a: Roster, b: Roster): boolean {
  return (
    a.mode === b.mode &&
    a.workers.length === b.workers.length &&
    a.workers.every((worker, at) => worker === b.workers[at])
  );
}
