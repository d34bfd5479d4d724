// What is said of each model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelFindings } from "../../../src/status/model-findings.ts";
import { known } from "../plan/world.ts";
import {
  conditionOf,
  failure,
  model,
  pulled,
  pullOfModel,
  type Situation,
  stalledPull,
  statusInput,
} from "./situations.ts";

const sized = { models: [{ id: "acme/a:Q8_0", ctxSize: 4096 }] };

const models: readonly (readonly [
  why: string,
  id: string,
  situation: Situation,
  conditions: Readonly<Record<string, string>>,
])[] = [
  [
    "there and in force",
    "acme/a:Q8_0",
    { document: sized, machine: { ...pulled, inventory: { "acme/a:Q8_0": ["a-Q8_0.gguf"] } } },
    { Present: "True Cached", Verified: "True ChecksumMatched", Applied: "True InForce", Loaded: "False Unloaded" },
  ],
  [
    "loaded",
    "acme/a:Q8_0",
    { document: sized, machine: { ...pulled, router: { loaded: ["acme/a:Q8_0"] } } },
    { Loaded: "True Loaded" },
  ],
  [
    "named by its file",
    "acme/a:a-Q8_0",
    {
      document: { models: [{ id: "acme/a:a-Q8_0", ctxSize: 4096 }] },
      machine: { ...pulled, inventory: { "acme/a:a-Q8_0": ["a-Q8_0.gguf"] }, router: { loaded: ["acme/a:Q8_0"] } },
    },
    { Present: "True Cached", Verified: "True ChecksumMatched", Applied: "True InForce", Loaded: "True Loaded" },
  ],
  [
    "named by the end of its file's name",
    "acme/b:UD-Q4_K_XL",
    { document: { models: ["acme/b:UD-Q4_K_XL"] }, machine: { files: ["acme/b/b-UD-Q4_K_XL.gguf"] } },
    { Present: "True Cached", Applied: "True InForce" },
  ],
  [
    "not listed by the router by itself",
    "acme/b:tiny",
    {
      document: { models: ["acme/b:tiny"] },
      machine: { files: ["acme/b/tiny.gguf"], router: { loaded: ["acme/b:TINY"] } },
    },
    { Applied: "True InForce", Loaded: "True Loaded" },
  ],
  [
    "stored by another program",
    "acme/a:Q8_0",
    { machine: pulled },
    { Present: "True Cached", Verified: "Unknown NotOurs" },
  ],
  [
    "another program's file has taken the id of ours",
    "acme/a:Q8_0",
    { machine: { files: ["acme/a/m-Q8_0.gguf"], inventory: { "acme/a:Q8_0": ["long-Q8_0.gguf"] } } },
    { Verified: "Unknown NotOurs" },
  ],
  [
    "not there",
    "acme/a:Q8_0",
    { document: model },
    { Present: "False Absent", Verified: "Unknown Absent", Applied: "False Absent", Loaded: "False NotListed" },
  ],
  [
    "damaged, and named",
    "acme/a:Q8_0",
    { document: model, machine: { files: ["acme/a/a-Q8_0.gguf~"], inventory: { "acme/a:Q8_0": ["a-Q8_0.gguf"] } } },
    { Present: "False Incomplete", Verified: "False Damaged", Applied: "False Absent" },
  ],
  [
    "there, without the source that the document names",
    "acme/a:Q8_0",
    {
      document: { models: [{ id: "acme/a:Q8_0", source: "./a.gguf" }] },
      machine: { files: ["acme/a/a-Q8_0.gguf"], sources: { "./a.gguf": null } },
    },
    { Present: "True Cached", Applied: "False SourceMissing" },
  ],
  [
    "there, with another source that cannot be imported",
    "acme/a:Q8_0",
    {
      document: { models: [{ id: "acme/a:Q8_0", source: "./a.gguf" }] },
      machine: { files: ["acme/a/a-Q8_0.gguf"], sources: { "./a.gguf": "now" } },
      backoff: new Map([["model.import model/acme/a:Q8_0", { ...failure, reason: "InvalidModelFile" }]]),
    },
    { Present: "True Cached", Applied: "False InvalidModelFile" },
  ],
  [
    "half there",
    "acme/a:Q8_0",
    { document: model, machine: { files: ["acme/a/a-Q8_0-00001-of-00002.gguf"] } },
    { Present: "False Incomplete" },
  ],
  [
    "being pulled",
    "acme/a:Q8_0",
    { document: model, running: [{ action: pullOfModel, startedAt: 0, progress: null }] },
    { Present: "False Pulling" },
  ],
  [
    "in the queue",
    "acme/a:Q8_0",
    { document: model, running: [{ action: pullOfModel, startedAt: null, progress: null }] },
    { Present: "False Queued" },
  ],
  ["its pull failed", "acme/a:Q8_0", { document: model, backoff: stalledPull }, { Present: "False QuantNotFound" }],
  [
    "no cache",
    "acme/a:Q8_0",
    { document: model, machine: { unknown: { cache: "x" } } },
    { Present: "Unknown NotObserved" },
  ],
  [
    "its folder cannot be read",
    "acme/a:Q8_0",
    { document: model, machine: { ...pulled, unreadable: ["acme/a"] } },
    { Present: "Unknown NotObserved" },
  ],
  [
    "another size is loaded than is written",
    "acme/a:Q8_0",
    { document: sized, machine: { ...pulled, router: { loadedPreset: "; before" } } },
    { Applied: "False Pending" },
  ],
  [
    "the router lists another size",
    "acme/a:Q8_0",
    {
      document: sized,
      machine: {
        ...pulled,
        router: {
          models: known([
            { id: "acme/a:Q8_0", value: "unloaded", failed: false, args: ["--ctx-size", "512"], nCtx: null },
          ]),
        },
      },
    },
    { Applied: "False Pending" },
  ],
  [
    "its last load failed",
    "acme/a:Q8_0",
    {
      machine: {
        ...pulled,
        router: { models: known([{ id: "acme/a:Q8_0", value: "unloaded", failed: true, args: [], nCtx: null }]) },
      },
    },
    { Loaded: "False LoadFailed" },
  ],
  [
    "it is being loaded",
    "acme/a:Q8_0",
    {
      machine: {
        ...pulled,
        router: { models: known([{ id: "acme/a:Q8_0", value: "loading", failed: false, args: [], nCtx: null }]) },
      },
    },
    { Loaded: "False Loading" },
  ],
  [
    "the router does not answer",
    "acme/a:Q8_0",
    { machine: { ...pulled, router: { models: { state: "unknown", why: "x" } } } },
    { Applied: "Unknown NotObserved", Loaded: "Unknown NotObserved" },
  ],
  [
    "a setting that cannot be met",
    "acme/a:Q8_0",
    { document: { models: [{ id: "acme/a:Q8_0", preset: { mlock: true } }] }, machine: pulled },
    { Applied: "False CannotApply" },
  ],
];

for (const [why, id, situation, conditions] of models) {
  test(`model: ${why}`, () => {
    const findings = modelFindings(id, statusInput(situation));
    for (const [type, expected] of Object.entries(conditions))
      assert.equal(conditionOf(type, findings), expected, type);
  });
}
