// What the parts of a gateway report to each other. A part emits what happened and has no reference to a listener, so parts can be created in
// one order, from the bottom up. Listeners run at once, in the order in which they were added.
import type { FastifyBaseLogger } from "fastify";
import type { SourceStatus } from "../desired/document/parse.ts";
import type { RouterEvent } from "../engines/llama/router-client.ts";
import type { Outcome } from "../execute/executor.ts";
import type { Action, Progress } from "../plan/actions.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Settings } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";

/** What every part of a gateway is given. */
export interface Base {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly warn: (message: string, fields: object) => void;
  readonly events: Events;
}

export function createBase(settings: Settings, logger: FastifyBaseLogger): Base {
  return { settings, logger, warn: (message, fields) => logger.warn(fields, message), events: createEvents() };
}

export type GatewayEvent =
  /** Something that the loop observes may differ. */
  | { readonly type: "changed" }
  /** There is another engine: what failed with the old one may work now. */
  | { readonly type: "engineFound" }
  | { readonly type: "documentChanged"; readonly generation: number }
  | { readonly type: "sourceChecked"; readonly status: SourceStatus }
  /** null: its process changed, not one of its models. */
  | { readonly type: "routerChanged"; readonly event: RouterEvent | null }
  /** The router's list was read, or an instance is gone. */
  | { readonly type: "modelsListed" }
  | { readonly type: "passed"; readonly pass: Pass }
  /** Failures are to be forgotten. */
  | { readonly type: "retried" }
  | { readonly type: "actionStarted"; readonly action: Action }
  | { readonly type: "actionProgressed"; readonly action: Action; readonly progress: Progress }
  | { readonly type: "actionSettled"; readonly outcome: Outcome }
  | { readonly type: "conditionChanged"; readonly subject: string; readonly condition: Condition }
  /** By the router's id: its first answer begins, its last one is over. */
  | { readonly type: "modelInUse" | "modelIdle"; readonly id: string }
  | { readonly type: "modelDrained"; readonly model: string; readonly cut: number }
  /** By the router's id. */
  | { readonly type: "loadFailed"; readonly id: string }
  /** A worker was lost while these models used it. */
  | { readonly type: "workersLost"; readonly models: readonly string[]; readonly message: string }
  /** Lines of the preset file that the router could not have read are comments now. */
  | { readonly type: "presetLinesDisabled"; readonly lines: readonly string[] };

type EventType = GatewayEvent["type"];
type Listener<Type extends EventType> = (event: Extract<GatewayEvent, { readonly type: Type }>) => void;

export interface Events {
  on<Type extends EventType>(type: Type, listener: Listener<Type>): void;
  emit(event: GatewayEvent): void;
}

export function createEvents(): Events {
  const listeners = new Map<EventType, ((event: never) => void)[]>();
  return {
    on: (type, listener) => void listeners.set(type, [...(listeners.get(type) ?? []), listener]),
    emit: (event) => {
      for (const listener of listeners.get(event.type) ?? []) (listener as (event: GatewayEvent) => void)(event);
    },
  };
}
