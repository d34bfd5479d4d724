// What the native family's routes work with.

import type { Catalogue } from "../catalogue.ts";
import type { Edits } from "../edits/edits.ts";
import type { PullTimes } from "../edits/pull-patience.ts";
import type { ExchangeDeps } from "../exchange.ts";

export interface NativeRoutesDeps extends ExchangeDeps, Pick<PullTimes, "pullRepeatMs"> {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
}
