// What the routes of the compatible family need.
import type { Catalogue } from "../../catalog/catalog.ts";
import type { Edits } from "../../commands/edits.ts";
import type { ExchangeDeps } from "../proxy/exchange.ts";

export interface CompatRoutesDeps extends ExchangeDeps {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
  /** What `/health` tells of the router. */
  readonly routerReady: () => boolean;
}
