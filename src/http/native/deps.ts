// What the native family's routes work with.

import type { Catalogue } from "../catalogue.ts";
import type { Edits } from "../edits/edits.ts";
import type { ExchangeDeps } from "../exchange.ts";

export interface NativeRoutesDeps extends ExchangeDeps {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
  /** ms after which a pull's stream repeats its last record; default 10 s. */
  readonly pullRepeatMs?: number;
}
