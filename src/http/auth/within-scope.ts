// What a request sets for every client of its model, and not for its answer alone: a license key of scope `chat` sets none of it.
import { GatewayError } from "../../core/errors.ts";
import type { KeepAlive } from "../../core/keep-alive.ts";
import type { KeyScope } from "../../keys/key-list.ts";

export interface ModelWishes {
  /** Tokens. undefined: what is in force. */
  readonly contextSize?: number | undefined;
  /** How long the model stays loaded after the request. */
  readonly keepAlive?: KeepAlive;
}

/** Errors: `scope_missing` for an unload. */
export function withinScope(
  scope: KeyScope | null,
  { contextSize, keepAlive = { kind: "default" } }: ModelWishes,
): Required<ModelWishes> {
  if (scope === "all") return { contextSize, keepAlive };
  // Ignored, it would be answered with an unload that did not happen.
  if (keepAlive.kind === "seconds" && keepAlive.seconds === 0)
    throw new GatewayError("scope_missing", "`keep_alive: 0` unloads the model, beyond the scope of this license key");
  return { contextSize: undefined, keepAlive: { kind: "default" } };
}
