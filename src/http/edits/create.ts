// The edits, wired to the document and the loop.
import { GatewayError } from "../../core/errors.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Loop } from "../../reconcile/loop.ts";
import type { StatusReport } from "../../status/report.ts";
import type { Admission } from "../admission.ts";
import type { Catalogue } from "../catalogue.ts";
import type { Edits } from "./edits.ts";

export interface EditsDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly admission: Admission;
  readonly catalogue: Catalogue;
  readonly status: () => StatusReport;
  readonly waitTimeoutMs: number;
}

export function createEdits(_deps: EditsDeps): Edits {
  const later = (): never => {
    throw new GatewayError("not_supported", "not yet");
  };
  return {
    setContextSize: later,
    eject: later,
    remove: later,
    pull: later,
    addAlias: later,
    removeAlias: later,
    setRpcMode: later,
    addWorkers: later,
    removeWorkers: later,
  };
}
