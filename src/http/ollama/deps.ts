// What the native family's routes work with.

import type { Catalogue } from "../../catalog/catalog.ts";
import type { Edits } from "../../commands/edits.ts";
import type { PullTimes } from "../../commands/pull-patience.ts";
import type { ExchangeDeps } from "../proxy/exchange.ts";

export interface NativeRoutesDeps extends ExchangeDeps, Pick<PullTimes, "pullRepeatMs"> {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
}
