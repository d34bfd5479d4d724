// The RPC mode and the roster of workers.
import type { FastifyInstance } from "fastify";
import {
  type RpcModeRequest,
  type RpcWorkersRequest,
  rpcModeRequestSchema,
  rpcWorkersRequestSchema,
} from "../../../schemas/admin.ts";
import type { Edits, RpcRoster } from "../../commands/edits.ts";
import { callOf } from "../server/call.ts";
import { bodyCheck } from "../server/validate.ts";

const modeRequest = bodyCheck<RpcModeRequest>(rpcModeRequestSchema);
const workersRequest = bodyCheck<RpcWorkersRequest>(rpcWorkersRequestSchema);

export function rpcRoutes(
  app: FastifyInstance,
  edits: Pick<Edits, "setRpcMode" | "addWorkers" | "removeWorkers">,
): void {
  app.post("/api/rpc/mode", async (request, reply) =>
    body(await edits.setRpcMode(modeRequest(request.body).mode, callOf(request, reply))),
  );
  app.post("/api/rpc/workers", async (request, reply) =>
    body(await edits.addWorkers(workersOf(request.body), callOf(request, reply))),
  );
  app.post("/api/rpc/workers/remove", async (request, reply) =>
    body(await edits.removeWorkers(workersOf(request.body), callOf(request, reply))),
  );
}

function workersOf(value: unknown): readonly string[] {
  const { workers, worker } = workersRequest(value);
  return workers ?? (worker === undefined ? [] : [worker]);
}

function body({ mode, workers, notInUse }: RpcRoster): object {
  return { ok: true, mode, workers, notInUse };
}
