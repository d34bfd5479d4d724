// What models that are still on the hub would take of memory, wired to the hub and to the newest pass.

import { steadyNow } from "../core/steady.ts";
import { createHubFits } from "../memory/hub-fits.ts";
import { createHubNeeds } from "../memory/hub-needs.ts";
import type { Memory } from "../memory/memory.ts";
import type { Loop } from "../reconcile/loop.ts";
import { wholePlan } from "../reconcile/whole-plan.ts";
import { fetchFailure } from "../status/model-findings.ts";
import type { Base } from "./events.ts";
import type { Machine } from "./machine.ts";
import { planRules } from "./plan-rules.ts";

export type HubFits = ReturnType<typeof createHubFits>;

/** To be created after what takes the needs of a pass. */
export function createHubMemory(
  parts: Base & Pick<Machine, "hub" | "askHub"> & { readonly memory: Memory; readonly loop: Loop },
) {
  const { settings, events, hub, askHub, memory, loop } = parts;
  const over = new AbortController();
  const hubNeeds = createHubNeeds({ hub, memory, over: over.signal });
  const hubFits = createHubFits({
    needs: hubNeeds,
    memory,
    // As if nothing had failed: what has is not asked about.
    planOf: ({ desired, observed }, isWanted) =>
      wholePlan({
        desired,
        observed,
        context: {
          now: steadyNow(),
          backoff: new Map(),
          ...planRules(settings),
        },
        running: [],
        inFlight: new Map(),
        memory: new Map(),
        askHub: (pulls, signal) =>
          askHub(
            pulls.filter((pull) => pull.kind === "model.pull" && isWanted(pull.model)),
            signal,
          ),
        signal: over.signal,
      }),
    onKnown: () => events.emit("memoryKnown", 0),
    now: steadyNow,
  });
  const see = (): void => {
    const pass = loop.last();
    if (!pass) return;
    const { desired, observed } = pass;
    const failureOf = (id: string): string | null => fetchFailure(id, loop.backoff())?.message ?? null;
    hubFits.see({ generation: desired.generation, desired: desired.document, observed, failureOf });
  };
  events.on("passed", see);
  // The engine's tool was found, perhaps.
  events.on("memoryKnown", see);
  const closeHubMemory = (): void => {
    over.abort();
    hubFits.close();
  };
  return { hubNeeds, hubFits, closeHubMemory };
}
