// What the gateway says a model takes of memory, before it is loaded, against what the real engine then takes.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { dirname } from "node:path";
import { test } from "node:test";
import { linkSnapshot, writeRef } from "../../src/cache/download/link.ts";
import { blobPath } from "../../src/cache/layout/layout.ts";
import { memoryText } from "../../src/core/memory-text.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { type GatewayFolders, makeFolders } from "../support/folders.ts";
import { modelsOf, startTestGateway } from "../support/gateway.ts";
import { talkingModel, writeModelFile } from "../support/models.ts";
import { messageOf } from "../support/own-calls.ts";
import { chatWith, postWith } from "../support/requests.ts";

const mebibyte = 1024 ** 2;
/** Tokens. */
const mostTokens = 4_194_304;
/** Of each layer, for a token: 2 × 160 values of 2 bytes. */
const width = 640;
const cacheBytes = 2 * (width / 4) * 2;

/** In the cache without its zeros being written: 800 MB take no time. Its id. */
async function cacheSparse(
  { cacheDir }: GatewayFolders,
  {
    name,
    layers,
    feedForward = 4096,
    contextLength = 8192,
    zeros,
  }: {
    readonly name: string;
    readonly layers: number;
    readonly feedForward?: number;
    /** Trained, in tokens. */
    readonly contextLength?: number;
    readonly zeros?: "Q4_0";
  },
): Promise<string> {
  const [repo, path] = [`acme/${name}`, `${name}-Q8_0.gguf`];
  const blob = Buffer.from(name).toString("hex").padEnd(64, "0");
  const commit = blob.slice(0, 40);
  const file = blobPath(cacheDir, repo, blob);
  await mkdir(dirname(file), { recursive: true });
  const size = await writeModelFile(file, {
    ...talkingModel(name, { contextLength }),
    width,
    feedForward,
    layers,
    ...(zeros && { zeros }),
  });
  await linkSnapshot({ cacheDir, repo, commit, files: [{ path, blob, size }] });
  await writeRef(cacheDir, repo, "main", commit);
  return `${repo}:Q8_0`;
}

/** Bytes that no other process has, and its part of those that others have too; `Pss_Anon`: without pages of files. */
async function pssOf(pid: number, which: "Pss" | "Pss_Anon"): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  return 1024 * Number(new RegExp(`^${which}:\\s+(\\d+)`, "m").exec(text)?.[1]);
}

test("what a model takes is known before it is loaded, within 5 % or 64 MiB; one that can never fit is told with a remedy", async (t) => {
  const folders = await makeFolders(t);
  /** With the KV cache alone it takes twice what there is. */
  const beyond = { name: "beyond", layers: Math.ceil((2 * totalmem()) / (cacheBytes * mostTokens)), feedForward: 64 };
  const endless = { ...beyond, name: "endless", contextLength: mostTokens };
  const refused = { name: "refused", layers: 1 };
  // A batch is computed on one thread: a small one for what is large.
  const batch = "ubatch-size: 32, batch-size: 32";
  const cases: (Parameters<typeof cacheSparse>[1] & { readonly prompt: number; readonly settings: string })[] = [
    { name: "small", layers: 1, prompt: 520, settings: "ctxSize: 8192" },
    { name: "slots", layers: 6, prompt: 40, settings: `ctxSize: 65536, preset: { parallel: 4, ${batch} }` },
    {
      name: "types",
      layers: 6,
      prompt: 40,
      settings: `ctxSize: 131072, preset: { cache-type-k: q8_0, cache-type-v: q8_0, ${batch} }`,
    },
    { name: "large", layers: 24, prompt: 20, settings: "ctxSize: 16384, preset: { ubatch-size: 16, batch-size: 16 }" },
    { name: "rearranged", layers: 24, zeros: "Q4_0", prompt: 20, settings: `ctxSize: 8192, preset: { ${batch} }` },
    { ...endless, prompt: 0, settings: `ctxSize: ${mostTokens}, preset: { ${batch} }` },
    { ...beyond, prompt: 0, settings: `ctxSize: ${mostTokens}, preset: { ${batch} }` },
    { ...refused, prompt: 0, settings: "preset: { cache-type-v: q8_0, flash-attn: off }" },
  ];
  const lines: string[] = [];
  for (const each of cases) lines.push(`  - { id: "${await cacheSparse(folders, each)}", ${each.settings} }`);
  const yaml = `version: 1\nmodels:\n${lines.join("\n")}\n`;
  const gateway = await startTestGateway(t, { folders, yaml, flags: ["--models-max", "8"] });
  const idOf = ({ name }: { readonly name: string }): string => `acme/${name}:Q8_0`;
  const fitting = cases.filter(({ prompt }) => prompt > 0);
  const conditionOf = ({ models }: Pick<StatusReport, "models">, each: { readonly name: string }, type: string) =>
    models.find(({ id }) => id === idOf(each))?.conditions.find((condition) => condition.type === type);

  const status = await gateway.until(
    "every need is known, and the remedy",
    (report) =>
      fitting.every((each) => conditionOf(report, each, "Fits")?.status === "True") &&
      conditionOf(report, refused, "Fits")?.status === "False" &&
      [endless, beyond].every((each) => / would fit/.test(conditionOf(report, each, "Fits")?.message ?? "")),
  );
  const limit = status.memory.limits["Host"] ?? 0;
  const before = await modelsOf(gateway);
  for (const each of fitting) {
    await t.test(`${each.name}: ${each.settings}`, async () => {
      const need = before.get(idOf(each))?.runtime?.need;
      assert.equal(need?.source, "estimated");
      assert.deepEqual(need.estimated, { Host: need.bytes });
      const { message } = conditionOf(status, each, "Fits") ?? {};
      assert.equal(message, `It needs ${memoryText(need.bytes)} of ${memoryText(limit)} (estimated).`);
      // A whole batch: the engine takes its buffers as it fills them.
      await gateway.ask(idOf(each), "x".repeat(each.prompt));
      const pid = (await modelsOf(gateway)).get(idOf(each))?.runtime?.pid;
      assert.ok(pid);
      // The pages of the file behind rearranged weights are still there, and free for others.
      const taken = await pssOf(pid, "zeros" in each ? "Pss_Anon" : "Pss");
      const text = `${each.name}: ${memoryText(need.bytes)} estimated, ${memoryText(taken)} taken`;
      t.diagnostic(text);
      assert.ok(Math.abs(need.bytes - taken) <= Math.max(64 * mebibyte, 0.05 * taken), text);
    });
  }
  await t.test("what can never fit is not ready, and the remedy has numbers", async () => {
    const { message = "", reason } = conditionOf(status, endless, "Fits") ?? {};
    assert.equal(reason, "TooLarge");
    const [, plain, quantized] = /: a context of (\d+) would fit; with [\w -]+ q8_0, (\d+)\./.exec(message) ?? [];
    // Of the values q8_0 takes 34 bytes for 32; the rest is what one layer has of weights and buffers.
    const expected = limit / (cacheBytes * endless.layers);
    const near = (tokens: string | undefined, wanted: number): boolean =>
      Number(tokens) <= wanted && Number(tokens) > 0.8 * wanted && Number(tokens) % 1024 === 0;
    assert.ok(near(plain, expected) && near(quantized, expected * (64 / 34)), `${message} (${expected})`);
    assert.equal(conditionOf(status, endless, "Ready")?.reason, "TooLarge");
    assert.equal(status.health, "Degraded");
    const set = conditionOf(status, beyond, "Fits")?.message ?? "";
    assert.match(set, /: a context of 8192 would fit\./, "no more than it is trained for, which no call could set");
  });
  await t.test("settings that the engine refuses are told with its words, before a load", async () => {
    const cause = "llama_init_from_model: quantized V cache requires flash_attn to be enabled";
    assert.equal(conditionOf(status, refused, "Fits")?.reason, "Refused");
    // Its abort may lose the line of its log, and leaves the exception's: 56 of 60 did on busy cores. A load that fails loses none.
    const words = new RegExp(`refuses its settings.*: (${cause}|failed to create llama_context from model)`);
    assert.match(conditionOf(status, refused, "Ready")?.message ?? "", words);
    const failed = await gateway.json("/v1/chat/completions", chatWith(idOf(refused)));
    assert.equal(messageOf(failed), `${idOf(refused)} could not be loaded: ${cause}`);
  });
  await t.test("lists and details have it", async () => {
    const id = idOf({ name: "small" });
    const need = (await modelsOf(gateway)).get(id)?.runtime?.need;
    assert.equal(need?.source, "measured");
    const { body: list } = await gateway.json("/v1/models");
    const entry = (list["data"] as { id: string; meta: { memory?: object } }[]).find((model) => model.id === id);
    assert.deepEqual(entry?.meta.memory, need);
    const { body: shown } = await gateway.json("/api/show", postWith({ model: id }));
    assert.deepEqual(shown["memory"], need);
    const { body: disk } = await gateway.json("/api/models/disk");
    assert.deepEqual(
      (disk["models"] as { id: string; memory: object }[]).find((model) => model.id === id)?.memory,
      need,
    );
  });
});
