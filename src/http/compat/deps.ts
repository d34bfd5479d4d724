// What the routes of the compatible family need.
import type { Catalogue } from "../catalogue.ts";
import type { Edits } from "../edits/edits.ts";
import type { ExchangeDeps } from "../exchange.ts";

export interface CompatRoutesDeps extends ExchangeDeps {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
  /** What `/health` tells of the router. */
  readonly routerReady: () => boolean;
}
