// What the parts of a gateway report to each other. A part emits what happened and has no reference to a listener, so parts can be created in
// one order, from the bottom up. Listeners run at once, in the order in which they were added.
import { EventEmitter } from "node:events";
import type { FastifyBaseLogger } from "fastify";
import type { SourceStatus } from "../desired/document/parse.ts";
import type { RouterEvent } from "../engines/llama/router-client.ts";
import type { Outcome } from "../execute/executor.ts";
import type { Action, Progress } from "../plan/actions.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Settings } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";

export interface GatewayEvents {
  /** Something that the loop observes may differ. */
  changed: [];
  /** There is another engine: what failed with the old one may work now. */
  engineFound: [];
  documentChanged: [generation: number];
  sourceChecked: [status: SourceStatus];
  /** null: its process changed, not one of its models. */
  routerChanged: [event: RouterEvent | null];
  /** The router's list was read, or an instance is gone. */
  modelsListed: [];
  passed: [pass: Pass];
  /** What had drifted from the document was brought back. */
  driftMended: [];
  /** More is known of what models take of memory; so many questions are open. */
  memoryKnown: [left: number];
  /** Failures are to be forgotten. */
  retried: [];
  actionStarted: [action: Action];
  actionProgressed: [action: Action, progress: Progress];
  actionSettled: [outcome: Outcome];
  conditionChanged: [subject: string, condition: Condition];
  /** By the router's id: its first answer begins. */
  modelInUse: [id: string];
  /** Its last answer is over. */
  modelIdle: [id: string];
  modelDrained: [model: string, cut: number];
  /** By the router's id: its process has given its first token. */
  loadVerified: [id: string];
  loadFailed: [id: string];
  /** A worker was lost while these models used it. */
  workersLost: [models: readonly string[], message: string];
  /** A pull of the repository goes on without the mirror. */
  mirrorMissed: [repo: string, why: string];
  /** Lines of the preset file that the router could not have read are comments now. */
  presetLinesDisabled: [lines: readonly string[]];
}

/** What every part of a gateway is given. */
export interface Base {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly warn: (message: string, fields: object) => void;
  readonly events: EventEmitter<GatewayEvents>;
}

export function createBase(settings: Settings, logger: FastifyBaseLogger): Base {
  // As many parts as there are follow a pass.
  const events: Base["events"] = new EventEmitter<GatewayEvents>().setMaxListeners(0);
  return { settings, logger, warn: (message, fields) => logger.warn(fields, message), events };
}
