// What models that are still on the hub would take of memory, by the heads of their files, against what their files need once they are here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { HubModels } from "../../schemas/admin.ts";
import type { PlanBody } from "../../schemas/plan.ts";
import { toolBeside } from "../../src/engines/install/locate.ts";
import { bytesOf, totalOf } from "../../src/memory/need.ts";
import { parseRows } from "../../src/memory/oracle.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { commandHere } from "../support/command.ts";
import { installedServer } from "../support/engine.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { until } from "../support/scratch.ts";
import { scriptedShards } from "../support/scripted/scripted-model.ts";

const mebibyte = 1024 ** 2;
const big = "acme/big-GGUF:Q8_0";
const parts = "acme/parts-GGUF:Q8_0";
const endless = "acme/endless-GGUF:Q8_0";
const gated = "acme/gated-GGUF:Q8_0";
const context = 32_768;

const bigModel = { ...talkingModel("big"), contextLength: context, width: 1024, feedForward: 4096, layers: 6 };
/**
 * With the KV cache alone it takes twice what there is: 1 KiB of each layer for a token. The tool writes 50 bytes for each token, 20
 * times; the engine has at most 512 layers, enough for a machine of 1 TiB.
 */
const mostTokens = 4_194_304;
const endlessModel = {
  ...talkingModel("endless"),
  contextLength: mostTokens,
  width: 1024,
  feedForward: 64,
  layers: Math.ceil((2 * totalmem()) / (1024 * mostTokens)),
};
const partsModel = { ...talkingModel("parts"), contextLength: context, width: 768, feedForward: 4096, layers: 5 };

test("memory is estimated by heads on the hub, before a pull, in a plan and for a repository; it is what the files need", async (t) => {
  const hub = await startLoopbackHub(t);
  const shards = scriptedShards(partsModel, 2);
  const [bigFile, endlessFile] = ["big-Q8_0.gguf", "endless-Q8_0.gguf"];
  const partFile = (no: number): string => `parts-Q8_0-0000${no}-of-00002.gguf`;
  hub.addRepo("acme/big-GGUF", { files: { [bigFile]: modelBytes(bigModel) } });
  hub.addRepo("acme/parts-GGUF", {
    files: {
      ...Object.fromEntries(shards.map((bytes, at) => [partFile(at + 1), bytes])),
      "parts-Q4_0.gguf": Buffer.from("no model"),
    },
  });
  hub.addRepo("acme/gated-GGUF", { files: { "gated-Q8_0.gguf": modelBytes(talkingModel("gated")) }, gated: true });
  hub.addRepo("acme/endless-GGUF", { files: { [endlessFile]: modelBytes(endlessModel) } });
  const folders = await makeFolders(t);
  // The pulls wait in the middle of their files; ranges of heads are shorter.
  const pulls = [bigFile, endlessFile].map((path) => hub.throttle(path, 2 * mebibyte));
  const release = (): void => pulls.forEach((pull) => pull.release());
  t.after(release);
  const gateway = await startTestGateway(t, {
    folders,
    environment: { HF_ENDPOINT: hub.endpoint },
    yaml: `version: 1\nmodels: [{ id: "${big}", ctxSize: ${context} }, { id: "${endless}", ctxSize: ${mostTokens} }, "${gated}"]\n`,
  });
  const fitsOf = ({ models }: StatusReport, id: string) =>
    models.find((model) => model.id === id)?.conditions.find(({ type }) => type === "Fits");

  const before = await gateway.until(
    "the model on the hub is estimated",
    (status) => fitsOf(status, big)?.status === "True",
  );
  assert.match(
    fitsOf(before, big)?.message ?? "",
    /^It needs \d+ MiB of .* \(estimated by the head of its file on the hub\)\.$/,
  );
  assert.notEqual(
    before.models.find(({ id }) => id === big)?.conditions.find(({ type }) => type === "Present")?.status,
    "True",
  );
  const large = await gateway.until("what would fit is told of the one that does not", (status) =>
    /a context of \d+ would fit/.test(fitsOf(status, endless)?.message ?? ""),
  );
  assert.equal(fitsOf(large, endless)?.reason, "TooLarge");
  const refused = await gateway.until(
    "the gated one is refused",
    (status) => fitsOf(status, gated)?.reason === "NotEstimated",
  );
  assert.match(fitsOf(refused, gated)?.message ?? "", /^What it needs is not known: .*acme\/gated-GGUF.*HF_TOKEN/);

  // Shards, in a plan of a document that nobody has applied.
  const file = join(folders.root, "next.yaml");
  await writeFile(
    file,
    `version: 1\nmodels: [{ id: "${big}", ctxSize: ${context} }, { id: "${parts}", ctxSize: ${context} }]\n`,
  );
  const planned = await commandHere(folders, ["plan", "-f", file, "--json"], { HF_ENDPOINT: hub.endpoint });
  const { memory } = JSON.parse(planned.stdout) as PlanBody;
  const change = memory?.changes.find(({ model }) => model === parts);
  assert.deepEqual([change?.onHub, change?.from, change?.fits], [true, null, true], planned.stdout + planned.stderr);
  const text = await commandHere(folders, ["plan", "-f", file], { HF_ENDPOINT: hub.endpoint });
  assert.match(text.stdout, /^ {2}acme\/parts-GGUF:Q8_0 needs \d+ MiB by the head of its file on the hub$/m);

  const { status, body } = await gateway.json("/api/hf/repo-files?repo=acme/parts-GGUF&memory=true");
  assert.equal(status, 200);
  const [damaged, whole] = body as unknown as HubModels;
  assert.deepEqual([damaged?.tag, damaged?.need, damaged?.fits], ["Q4_0", null, null]);
  assert.match(damaged?.why ?? "", /is not a GGUF model/);
  assert.deepEqual([whole?.tag, whole?.fits, whole?.why], ["Q8_0", true, null]);
  assert.equal(
    whole?.size,
    shards.reduce((sum, { length }) => sum + length, 0),
  );
  assert.deepEqual(whole?.files, [partFile(1), partFile(2)]);

  const heads = hub.requests.filter(({ origin, range }) => origin === "storage" && range === `bytes=0-${mebibyte - 1}`);
  assert.ok(heads.length > 0);
  // Gateways of other tests have theirs for a moment in the same folder.
  const isLeft = (name: string): boolean => name.startsWith("model-gateway-heads-");
  await until("no head is left", async () => !(await readdir(tmpdir())).some(isLeft));

  // Now they are pulled, and the tool sees the real files.
  release();
  await writeFile(
    folders.configPath,
    `version: 1\nmodels: [{ id: "${big}", ctxSize: ${context} }, { id: "${parts}", ctxSize: ${context} }]\n`,
  );
  await gateway.until(
    "both are here",
    (now) => fitsOf(now, big)?.status === "True" && fitsOf(now, parts)?.status === "True" && now.sync === "Synced",
  );
  const tool = (await toolBeside(await installedServer(), "llama-fit-params")) ?? "";
  const sizeOf = async (id: string): Promise<number> => {
    const path = await pulledFile(folders.cacheDir, id);
    const args = ["--model", path, "--ctx-size", String(context), "--parallel", "1", "--fit-print", "on"];
    return totalOf(bytesOf(parseRows((await promisify(execFile)(tool, args)).stdout)));
  };
  const told = Number(/needs (\d+) MiB/.exec(fitsOf(before, big)?.message ?? "")?.[1]) * mebibyte;
  requireNear(told, await sizeOf(big));
  requireNear(change?.to ?? 0, await sizeOf(parts));
});

function requireNear(told: number, real: number): void {
  assert.ok(Math.abs(told - real) <= Math.max(64 * mebibyte, 0.05 * real), `${told} bytes were told, ${real} it is`);
}

/** The first file of a model in the cache. */
async function pulledFile(cacheDir: string, id: string): Promise<string> {
  const folder = join(cacheDir, `models--${id.split(":")[0]?.replace("/", "--")}`, "snapshots");
  const [commit = ""] = await readdir(folder);
  const [name = ""] = (await readdir(join(folder, commit))).filter((each) => each.includes("Q8_0")).toSorted();
  return join(folder, commit, name);
}
