// Planning and doing, over and over, in a simulated machine: it comes to rest, and then is as the document says.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Desired } from "../../../src/desired/document/document.ts";
import { findCached } from "../../../src/plan/find-model.ts";
import type { Observed, RouterModel } from "../../../src/plan/observed.ts";
import { presetCtxSize, readEntry } from "../../../src/plan/preset-file.ts";
import { pathInRepo } from "../../../src/plan/removals.ts";
import { build, randomDesired, randomDrift, randomMoment, randomWorld, runs } from "./random-worlds.ts";
import { readPresetAsRouter } from "./router-reading.ts";
import type { SimulatedWorld } from "./simulated-world.ts";
import { removalOf, type WorldFile } from "./world.ts";

/** Rounds of planning: each does one thing per lane, and failures are tried five times. */
const bound = 60;

test("bounded convergence: any world with any document comes to rest, and stays there", () => {
  fc.assert(
    fc.property(randomWorld, (seed) => {
      const simulated = build(seed);
      restsAsDesired(simulated);
    }),
    runs,
  );
});

test("bounded convergence: mishaps and another document on the way are made good", () => {
  fc.assert(
    fc.property(randomMoment, randomDesired, fc.array(randomDrift, { maxLength: 3 }), (seed, next, drifts) => {
      const simulated = build(seed);
      restsAsDesired(simulated);
      simulated.desired = next;
      for (const drift of drifts) {
        simulated.step(simulated.plan());
        simulated.drift(drift);
      }
      restsAsDesired(simulated);
    }),
    runs,
  );
});

test("a converged world plans nothing, also after models were loaded in it", () => {
  fc.assert(
    fc.property(randomMoment, (seed) => {
      const simulated = build(seed);
      restsAsDesired(simulated);
      simulated.drift({ kind: "model.loaded", nth: 1 });
      assert.deepEqual(simulated.plan().actions, []);
    }),
    runs,
  );
});

test("bounded convergence: a removal that somebody asked for is carried out through mishaps, and takes nothing else", () => {
  fc.assert(
    fc.property(randomMoment, fc.nat({ max: 9 }), fc.array(randomDrift, { maxLength: 3 }), (seed, nth, drifts) => {
      const simulated = build(seed);
      restsAsDesired(simulated);
      const { cache } = simulated.observe();
      assert.ok(cache.state === "known");
      const { models } = cache.value;
      const victim = models[nth % Math.max(1, models.length)];
      if (!victim) return;
      const paths = victim.files.map((file) => pathInRepo(victim, file));
      const others = (files: readonly WorldFile[]): readonly WorldFile[] =>
        files.filter(({ repo, path }) => repo !== victim.repo || !paths.includes(path));
      const before = others(simulated.files());
      const named = simulated.desired.models.filter(({ id }) => findCached(models, id) !== victim);
      // What prune takes as well is another matter.
      simulated.desired = {
        ...simulated.desired,
        models: named,
        prune: false,
        removals: [{ ...removalOf(victim.id, paths), repo: victim.repo }],
      };
      for (const drift of drifts) {
        if (drift.kind === "file.lost" || drift.kind === "file.added") continue;
        simulated.step(simulated.plan());
        simulated.drift(drift);
      }
      restsAsDesired(simulated);
      assert.deepEqual(simulated.desired.removals, []);
      assert.deepEqual(
        simulated.files().filter(({ repo, path }) => repo === victim.repo && paths.includes(path)),
        [],
      );
      for (const file of before)
        assert.ok(
          simulated
            .files()
            .some(({ repo, path, commit }) => repo === file.repo && path === file.path && commit === file.commit),
        );
    }),
    runs,
  );
});

function restsAsDesired(simulated: SimulatedWorld): void {
  simulated.drift({ kind: "cache.restored" });
  const { plan: last } = simulated.settle(bound);
  assert.deepEqual(last.actions, []);
  const stalled = last.held.filter(({ why }) => why === "stalled");
  // Nothing is pruned while something is missing.
  const pruned = stalled.length > 0 || last.findings.size > 0 ? ["prune"] : [];
  assert.ok(last.held.every(({ why }) => why === "stalled" || pruned.includes(why)));
  const failed = new Set(stalled.map((held) => ("model" in held.action ? held.action.model : held.action.kind)));
  inForce(simulated.desired, simulated.observe(), failed, last.findings);
}

/** Every model of the document is there, unless its pull failed for good, with the context size that was asked for. */
function inForce(
  desired: Desired,
  { cache, preset, router }: Observed,
  failed: ReadonlySet<string>,
  findings: ReadonlyMap<string, string>,
): void {
  assert.ok(cache.state === "known" && preset.state === "known" && router.models.state === "known");
  assert.equal(router.loadedPreset, preset.value.text);
  assert.equal(router.loadedCache, cache.value.signature);
  for (const model of desired.models) {
    const cached = findCached(cache.value.models, model.id);
    assert.ok(cached?.complete || failed.has(model.id), `${model.id} is missing`);
    if (!cached?.complete || findings.get(cached.id)?.includes("with other settings")) continue;
    const sections = readPresetAsRouter(preset.value.text);
    const listed: RouterModel | undefined = router.models.value.find((entry) => entry.id === cached.upstreamId);
    assert.ok(listed, `the router does not list ${cached.upstreamId}`);
    if (model.ctxSize !== undefined) {
      assert.equal(presetCtxSize(preset.value, cached.upstreamId), model.ctxSize);
      assert.equal(sections.get(cached.upstreamId)?.get("ctx-size"), String(model.ctxSize));
      assert.equal(listed.args[listed.args.indexOf("--ctx-size") + 1], String(model.ctxSize));
    } else if (desired.context.default !== undefined && !hasOwnSize(preset.value.text, cached.upstreamId)) {
      assert.equal(presetCtxSize(preset.value, cached.upstreamId), desired.context.default);
    }
  }
}

/** A person's own size in the model's section stands over the common default. */
function hasOwnSize(text: string, id: string): boolean {
  const own = readPresetAsRouter(text).get(id)?.get("ctx-size");
  return own !== undefined && readEntry(`ctx-size = ${own}`) !== null;
}
