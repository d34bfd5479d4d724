// Settings that are known to fail: the preset has the last ones that worked, until anything of it changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChosenContext, LoadInputs, LoadRecord } from "../../../src/plan/load-record.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { parsePreset } from "../../../src/plan/preset-file.ts";
import { filesIdentity, hasFallback, settingsIn } from "../../../src/plan/rollback.ts";
import { applied } from "./applied.ts";
import { desiredFrom, silenceLimitMs, world } from "./world.ts";

const id = "acme/a:Q8_0";
const context = { now: 1_000_000, backoff: new Map(), silenceLimitMs };

interface Scene {
  readonly document: object;
  readonly verified: Readonly<Record<string, string>>;
  /** Null: what the document asks for. */
  readonly failed?: Readonly<Record<string, string>> | null;
  readonly build?: string;
  readonly preset?: string;
}

function settingsOf(desired: ReturnType<typeof desiredFrom>, observed: Observed): ReadonlyMap<string, string> {
  return settingsIn(parsePreset(applied(desired, observed)), id);
}

function planned({ document, verified, failed = null, build = "1", preset }: Scene) {
  const desired = desiredFrom(document);
  const bare = world(desired, { files: ["acme/a/a-Q8_0.gguf"], ...(preset === undefined ? {} : { preset }) });
  assert.ok(bare.cache.state === "known");
  const [model] = bare.cache.value.models;
  assert.ok(model);
  const inputs = (settings: ReadonlyMap<string, string>): LoadInputs => ({
    settings,
    files: filesIdentity(model),
    engine: "1",
  });
  const asked = failed ? new Map(Object.entries(failed)) : settingsOf(desired, bare);
  const record: LoadRecord = {
    verified: inputs(new Map(Object.entries(verified))),
    failed: { ...inputs(asked), why: "bad type" },
  };
  const observed = {
    ...bare,
    loads: { records: new Map([[id, record]]), contexts: new Map() },
    router: { ...bare.router, build },
  };
  const found = plan(desired, observed, context);
  return { found, settings: Object.fromEntries(settingsOf(desired, observed)) };
}

test("settings that failed give way to the last ones that worked, in words", () => {
  const { found, settings } = planned({
    document: { models: [{ id, ctxSize: 4096, preset: { threads: 99 } }] },
    verified: { "ctx-size": "512" },
  });
  assert.deepEqual(settings, { "ctx-size": "512" });
  assert.deepEqual([...found.rolledBack], [id]);
  assert.equal(
    found.findings.get(id),
    "with ctx-size 4096, threads 99 it could not be loaded (bad type); it runs with ctx-size 512, no threads as before",
  );
});

test("they are tried again when they, the files or the engine are others", () => {
  const document = { models: [{ id, ctxSize: 4096 }] };
  for (const scene of [{ failed: { "ctx-size": "8192" } }, { build: "2" }, { verified: { "ctx-size": "4096" } }]) {
    const { found, settings } = planned({ document, verified: { "ctx-size": "512" }, ...scene });
    assert.deepEqual([settings, found.rolledBack.size, found.findings.size], [{ "ctx-size": "4096" }, 0, 0]);
  }
});

test("a size for all models gives way too, to none where there was none; a person's own keys stay", () => {
  const document = { context: { default: 4096 }, models: [id] };
  assert.deepEqual(planned({ document, verified: { "ctx-size": "512" } }).settings, { "ctx-size": "512" });
  assert.deepEqual(planned({ document, verified: {} }).settings, { "ctx-size": "0" });
  const preset = `[${id}]\n; mine\ntemp = 0.5\nhf-repo = ${id}\n`;
  const desired = desiredFrom({ models: [{ id, ctxSize: 4096 }] });
  const own = planned({ document: { models: [{ id, ctxSize: 4096 }] }, verified: { "ctx-size": "512" }, preset });
  assert.deepEqual(own.settings, { "ctx-size": "512" });
  const text = applied(desired, world(desired, { files: ["acme/a/a-Q8_0.gguf"], preset }));
  assert.match(text, /temp = 0\.5\n/);
});

test("the plan of a rolled back machine is empty, and so is the document's change back", () => {
  const { found } = planned({
    document: { models: [{ id, ctxSize: 4096 }] },
    verified: { "ctx-size": "512" },
    preset: applied(
      desiredFrom({ models: [{ id, ctxSize: 512 }] }),
      world(desiredFrom({}), { files: ["acme/a/a-Q8_0.gguf"] }),
    ),
  });
  assert.deepEqual([found.actions, found.held], [[], []]);
});

test("nothing is rolled back to what differs in the content of files alone", () => {
  const inputs = (settings: Readonly<Record<string, string>>, files = "f"): LoadInputs => ({
    settings: new Map(Object.entries(settings)),
    files,
    engine: "1",
  });
  const record = { verified: inputs({ "chat-template-file": "/t", tags: "files-1" }), failed: null };
  assert.equal(hasFallback(record, inputs({ "chat-template-file": "/t", tags: "files-2" })), false);
  assert.equal(hasFallback(record, inputs({ "chat-template-file": "/u", tags: "files-2" })), true);
  assert.equal(hasFallback(record, inputs({}, "g")), false);
});

test("ctxSize: auto waits for its choice, takes it, and says where there is none", () => {
  const desired = desiredFrom({
    context: { default: 2048 },
    models: [{ id, ctxSize: "auto", preset: { threads: 2 } }],
  });
  const bare = world(desired, { files: ["acme/a/a-Q8_0.gguf"], preset: "[*]\noffline = true\n" });
  const planWith = (contexts: ReadonlyMap<string, ChosenContext>) =>
    plan(desired, { ...bare, loads: { records: new Map(), contexts } }, context);
  const waits = planWith(new Map());
  const settings = waits.autos.get(id) ?? new Map();
  assert.deepEqual(waits.actions, []);
  assert.deepEqual(
    waits.held.map(({ why, because }) => `${why}: ${because}`),
    [`waiting: the context of ${id} is being chosen`],
  );
  assert.equal(waits.autos.get(id)?.get("threads"), "2");
  assert.equal(waits.autos.get(id)?.has("ctx-size"), false);
  const [write] = planWith(new Map([[id, { tokens: 4096, why: "", settings }]])).actions;
  assert.match(write?.kind === "preset.write" ? write.text : "", /ctx-size = 4096/);
  const forOther = { tokens: 4096, why: "", settings: new Map([...settings, ["threads", "4"]]) };
  assert.equal(planWith(new Map([[id, forOther]])).held[0]?.because, waits.held[0]?.because);
  const none = planWith(new Map([[id, { tokens: null, why: "none fits beside the pinned models", settings }]]));
  assert.equal(none.findings.get(id), "ctxSize: auto is left out: none fits beside the pinned models");
});
