// What the native family's routes work with.
import type { Catalog } from "../../catalog/catalog.ts";
import type { Edits } from "../../commands/edits.ts";
import type { PullTimes } from "../../commands/pull-patience.ts";
import type { ExchangeDeps } from "../proxy/generation.ts";
import { routesOf } from "../server/route.ts";

export interface NativeRoutesDeps extends ExchangeDeps, Pick<PullTimes, "pullRepeatMs"> {
  readonly catalog: Catalog;
  readonly edits: Edits;
  /** `keep_alive: 0` unloads and answers nothing, whatever else the body has, as the interface has it. */
  readonly zeroEjects: boolean;
}

export const { get, post, remove } = routesOf<NativeRoutesDeps>();
