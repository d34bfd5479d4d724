// The preset file after the plan's write; as it is where none is planned.
import type { Desired } from "../../../src/desired/document/document.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { silenceLimitMs } from "./world.ts";

export function applied(desired: Desired, observed: Observed): string {
  const { actions, held } = plan(desired, observed, { now: 1_000_000, backoff: new Map(), silenceLimitMs });
  const all = [...actions, ...held.map(({ action }) => action)];
  const write = all.find((action) => action.kind === "preset.write");
  return write?.text ?? (observed.preset.state === "known" ? observed.preset.value.text : "");
}
