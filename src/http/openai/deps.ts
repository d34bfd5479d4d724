// What the routes of the compatible family need.
import type { Catalog } from "../../catalog/catalog.ts";
import type { Edits } from "../../commands/edits.ts";
import type { ExchangeDeps } from "../proxy/exchange.ts";

export interface CompatRoutesDeps extends ExchangeDeps {
  readonly catalog: Catalog;
  readonly edits: Edits;
  /** What `/health` reports of the router. */
  readonly routerReady: () => boolean;
}
