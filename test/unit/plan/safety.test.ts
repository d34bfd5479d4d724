// What the planner must never do, whatever the machine, the document and the mishaps.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Desired } from "../../../src/desired/document/document.ts";
import type { Plan, PlanContext } from "../../../src/plan/actions.ts";
import { findCached } from "../../../src/plan/find-model.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { holdsFilesOf } from "../../../src/plan/removals.ts";
import { build, hub, randomDesired, randomMoment, runs, type WorldSeed } from "./random-worlds.ts";
import { desiredFrom, silenceLimitMs, world } from "./world.ts";

const context: PlanContext = { now: 2_000_000, backoff: new Map(), silenceLimitMs };
const unknown = { state: "unknown", why: "cannot be read" } as const;

function kinds(desired: Desired, observed: Observed): string[] {
  return plan(desired, observed, context).actions.map((action) => action.kind);
}

function check<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, property), runs);
}

/** By the world's seed: each property is checked over the same worlds, and to play one costs more than to plan. */
const worlds = new Map<string, Observed>();

function observedIn(seed: WorldSeed): Observed {
  const key = JSON.stringify(seed);
  const observed = worlds.get(key) ?? build(seed).observe();
  worlds.set(key, observed);
  return observed;
}

const moment = fc.tuple(randomMoment, randomDesired).map(([seed, other]) => ({ other, observed: observedIn(seed) }));

test("unknown never destroys: without the cache nothing at all is done", () => {
  check(moment, ({ other, observed }) => assert.deepEqual(kinds(other, { ...observed, cache: unknown }), []));
});

test("unknown never destroys: without the preset file nothing is written, removed or restarted", () => {
  check(moment, ({ other, observed }) => {
    const fetches = kinds(other, { ...observed, preset: unknown }).filter(
      (kind) => kind !== "model.pull" && kind !== "model.import",
    );
    assert.deepEqual(fetches, []);
  });
});

test("unknown never destroys: a repository's folder that cannot be read changes nothing in a world at rest", () => {
  check(fc.tuple(randomMoment, fc.constantFrom(...Object.keys(hub))), ([seed, repo]) => {
    const simulated = build(seed);
    simulated.drift({ kind: "cache.restored" });
    simulated.settle(60);
    simulated.drift({ kind: "model.loaded", nth: 0 });
    simulated.drift({ kind: "folder.unreadable", repo });
    const found = simulated.plan();
    // The router may read its cache again, but not what it serves from that folder.
    const ended = found.actions.flatMap((action) =>
      action.kind === "router.reload" ? action.disrupts : [action.kind],
    );
    assert.deepEqual(
      ended.filter((id) => !id.startsWith("model/") && (id.startsWith(`${repo}:`) || !id.includes(":"))),
      [],
    );
  });
});

test("one action per key", () => {
  check(moment, ({ other, observed }) => {
    const found = plan(other, observed, context);
    const keys = [...found.actions, ...found.held.map((held) => held.action)].map((action) => action.key);
    assert.deepEqual(keys, [...new Set(keys)]);
  });
});

test("while suspended nothing of the document is applied, and the router is kept running with the preset file as it is", () => {
  check(moment, ({ other, observed }) => {
    const suspended = plan({ ...other, suspend: true }, observed, context);
    const isFirst = observed.preset.state === "known" && observed.preset.value.text === "";
    for (const { kind, reason } of suspended.actions) {
      const upkeep = ["router.start RouterStopped", "router.start RouterCrashed", "router.restart RouterHung"];
      assert.ok([...upkeep, ...(isFirst ? ["preset.write PresetAbsent"] : [])].includes(`${kind} ${reason}`));
    }
    const told = (found: Plan): string[] =>
      [...found.actions, ...found.held.map((held) => held.action)].map(({ kind, key }) => `${kind} ${key}`);
    const all = told(suspended);
    assert.deepEqual(
      told(plan(other, observed, context)).filter((action) => !all.includes(action)),
      [],
    );
    const isDown = observed.router.phase === "stopped" && observed.preset.state === "known" && !isFirst;
    assert.equal(all.includes("router.start router"), isDown && observed.cache.state === "known");
  });
});

test("an emptied list prunes nothing without allowEmpty", () => {
  check(moment, ({ observed }) => {
    const emptied = desiredFrom({ models: [], prune: true });
    assert.ok(!kinds(emptied, observed).includes("model.remove"));
  });
});

test("without prune nothing is removed", () => {
  check(moment, ({ other, observed }) =>
    assert.ok(!kinds({ ...other, prune: false }, observed).includes("model.remove")),
  );
});

test("nothing outside the inventory is removed, nor what is kept or named", () => {
  check(moment, ({ other, observed }) => {
    if (observed.cache.state === "unknown") return;
    const { models } = observed.cache.value;
    for (const action of plan({ ...other, prune: true }, observed, context).actions) {
      if (action.kind !== "model.remove") continue;
      const entry = observed.inventory.find((candidate) => candidate.id === action.model);
      assert.ok(entry, "not in the inventory");
      assert.ok(!entry.keep, "kept");
      const cached = findCached(models, action.model);
      assert.ok(!cached || holdsFilesOf(entry, cached), "another program's files");
      const named = other.models.map((model) => findCached(models, model.id));
      assert.ok(!cached || !named.includes(cached), "named by the document under another of its names");
      const kept = observed.inventory
        .filter((candidate) => candidate.keep)
        .map((candidate) => findCached(models, candidate.id));
      assert.ok(!cached || !kept.includes(cached), "kept under another of its names");
    }
  });
});

test("a kept model is never removed", () => {
  const desired = desiredFrom({ models: ["acme/b:Q8_0"], prune: true });
  const files = ["acme/a/a-Q8_0.gguf", "acme/b/b-Q8_0.gguf"];
  const kept = world(desired, { files, inventory: { "acme/a:Q8_0": { files: ["a-Q8_0.gguf"], keep: true } } });
  assert.deepEqual(kinds(desired, kept), []);
  const free = world(desired, { files, inventory: { "acme/a:Q8_0": ["a-Q8_0.gguf"] } });
  assert.deepEqual(kinds(desired, free), ["model.remove"]);
});

test("sections go before files go", () => {
  check(moment, ({ other, observed }) => {
    const found = plan({ ...other, prune: true }, observed, context).actions;
    const removes = found.filter((action) => action.kind === "model.remove");
    if (removes.length === 0 || observed.preset.state === "unknown" || observed.cache.state === "unknown") return;
    const { text } = observed.preset.value;
    for (const { model } of removes) {
      const cached = findCached(observed.cache.value.models, model);
      assert.ok(
        !cached || cached.files.every((file) => !text.includes(`model = ${file}\n`)),
        "its files are named by the preset",
      );
    }
    assert.ok(!found.some((action) => action.kind === "preset.write"));
    if (observed.router.phase === "ready") assert.equal(observed.router.loadedPreset, text);
  });
});

test("prune comes last: nothing else is planned beside it, nor cannot be had", () => {
  check(moment, ({ other, observed }) => {
    const { actions, held, findings } = plan({ ...other, prune: true }, observed, context);
    if (!actions.some(({ kind }) => kind === "model.remove")) return;
    assert.ok(actions.every(({ kind }) => kind === "model.remove"));
    assert.deepEqual([held, findings.size], [[], 0]);
  });
});

test("a model that left the document is not deleted before its time", () => {
  check(moment, ({ other, observed }) => {
    const leftAt = new Date(context.now - 59_000).toISOString();
    const inventory = observed.inventory.map((entry) => ({ ...entry, leftAt }));
    assert.ok(!kinds({ ...other, prune: true }, { ...observed, inventory }).includes("model.remove"));
  });
});

test("planning changes nothing that it was given", () => {
  check(moment, ({ other, observed }) => {
    const before = JSON.stringify([other, observed]);
    plan(other, observed, context);
    assert.equal(JSON.stringify([other, observed]), before);
  });
});

test("the same world gives the same plan", () => {
  check(moment, ({ other, observed }) => {
    assert.deepEqual(plan(other, observed, context), plan(other, observed, context));
  });
});
