// The RPC mode and the roster of workers.
import {
  type RpcWorkersRequest,
  rpcModeRequestSchema,
  rpcRosterSchema,
  rpcWorkersRequestSchema,
} from "../../../schemas/admin.ts";
import { json, ok } from "../../../schemas/route.ts";
import type { Edits } from "../../commands/edits.ts";
import type { RpcRoster } from "../../commands/roster.ts";
import { callOf } from "../server/call.ts";
import { type Route, route } from "../server/route.ts";
import { changeErrors } from "../server/route-errors.ts";

export interface RpcRoutesDeps {
  readonly edits: Pick<Edits, "setRpcMode" | "addWorkers" | "removeWorkers">;
}

const roster = ok("The workers that there are now.", json(rpcRosterSchema));
const config = { errors: changeErrors } as const;

export const rpcRoutes: readonly Route<RpcRoutesDeps>[] = [
  route({
    method: "POST",
    url: "/api/rpc/mode",
    config,
    schema: {
      operationId: "setRpcMode",
      summary: "Turn RPC mode on or off",
      description: "`single`: this machine only; `rpc`: with the workers.",
      body: rpcModeRequestSchema,
      response: ok("The mode is in force.", json(rpcRosterSchema)),
    },
    handler: async ({ edits }: RpcRoutesDeps, request, reply) =>
      answer(await edits.setRpcMode(request.body.mode, callOf(request, reply))),
  }),
  route({
    method: "POST",
    url: "/api/rpc/workers",
    config,
    schema: {
      operationId: "addWorkers",
      summary: "Add RPC workers",
      body: rpcWorkersRequestSchema,
      response: roster,
    },
    handler: async ({ edits }: RpcRoutesDeps, request, reply) =>
      answer(await edits.addWorkers(workersOf(request.body), callOf(request, reply))),
  }),
  route({
    method: "POST",
    url: "/api/rpc/workers/remove",
    config,
    schema: {
      operationId: "removeWorkers",
      summary: "Remove RPC workers",
      body: rpcWorkersRequestSchema,
      response: roster,
    },
    handler: async ({ edits }: RpcRoutesDeps, request, reply) =>
      answer(await edits.removeWorkers(workersOf(request.body), callOf(request, reply))),
  }),
];

function workersOf({ workers, worker }: RpcWorkersRequest): readonly string[] {
  return workers ?? (worker === undefined ? [] : [worker]);
}

function answer({ mode, workers, notInUse }: RpcRoster): object {
  return { ok: true, mode, workers, notInUse };
}
