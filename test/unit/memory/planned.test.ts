// What a plan tells of memory: the models that it brings or changes, before and after, and the sum.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Desired } from "../../../src/desired/document/document.ts";
import { needOf } from "../../../src/memory/need.ts";
import { plannedMemory } from "../../../src/memory/planned.ts";
import type { Question } from "../../../src/memory/question.ts";
import { cachedIn } from "../../../src/plan/find-model.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { parsePreset } from "../../../src/plan/preset-file.ts";
import { desiredFrom, known, world } from "../plan/world.ts";

const [a, b, away] = ["acme/a:Q8_0", "acme/b:Q8_0", "acme/away:Q8_0"];

test("a changed model has two needs, others none of their own; all are in the sum; what new limits shut out is listed", async () => {
  const desired = desiredFrom({ models: [a, b, away] });
  const found = world(desired, { files: ["acme/a/a-Q8_0.gguf", "acme/b/b-Q8_0.gguf"] });
  const section = cachedIn(found, a)?.upstreamId ?? "";
  const withContext = (tokens: number): Observed => ({
    ...found,
    preset: known(parsePreset(`[${section}]\nctx-size = ${tokens}\n`)),
  });
  const need = async ({ runs: [args = []] }: Question) => {
    const tokens = Number(args[args.indexOf("--ctx-size") + 1] ?? 0);
    const context = args.includes("--ctx-size") ? tokens : 1;
    const found = needOf(new Map([["Host", { model: 100, context, compute: 0 }]]), null);
    assert.ok(found);
    return found;
  };
  const limits = ({ budget }: Desired["memory"] = {}) => new Map([["Host", Number(budget ?? 4000)]]);
  assert.deepEqual(
    await plannedMemory({ limits }, { need }, withContext(1000), {
      now: { actions: [], held: [] },
      answers: null,
      end: { world: { desired, observed: withContext(8000) } },
    }),
    {
      limits: { Host: 4000 },
      changes: [{ model: a, from: 1100, to: 8100, why: null, fits: false, onHub: false }],
      bytes: 8100 + 101,
      unknown: 1,
    },
  );
  // Nothing but the limits is another.
  const same = withContext(1000);
  const small = { ...desired, memory: { budget: 1050 } };
  const { limits: planned, changes } = await plannedMemory({ limits }, { need }, same, {
    now: { actions: [], held: [] },
    answers: null,
    end: { world: { desired: small, observed: same } },
  });
  assert.deepEqual(planned, { Host: 1050 });
  assert.deepEqual(changes, [{ model: a, from: 1100, to: 1100, why: null, fits: false, onHub: false }]);
});
