// Our ids beside the router's: each model once, under the interface's id, and really served, whatever the router calls it.
import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createCacheScanner } from "../../src/cache/scan/scan.ts";
import { startLlamaServer } from "../support/engine.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

/** Files of many shapes; what each says is its own name. */
const files: readonly (readonly [repo: string, file: string])[] = [
  ["acme/alpha", "alpha-Q4_K_M.gguf"],
  ["acme/alpha", "alpha-Q8_0.gguf"],
  ["MixedCase/Model-Name-GGUF", "Model-Name.q4_k_m.gguf"],
  ["acme/f16", "mymodel-F16.gguf"],
  ["acme/ud", "name-UD-IQ1_S.gguf"],
  ["acme/xl", "foo-UD-Q4_K_XL.gguf"],
  ["acme/a", "foo-a.gguf"],
  ["acme/size", "foo-7b.gguf"],
  ["acme/instruct", "foo-Instruct.gguf"],
  ["acme/version", "foo-1.0.gguf"],
  ["acme/mtp", "zoo-Q5_K_M-MTP.gguf"],
  ["acme/plain", "tiny.gguf"],
  ["acme/underscore", "foo_Q6_K.gguf"],
  ["acme/bare", "Q4_K_M.gguf"],
  ["acme/folder", "sub/dir/foo-Q8_0.gguf"],
  ["acme/iq", "foo-IQ4_NL.gguf"],
  ["acme/imat", "x-Q4_K_S-imat.gguf"],
  ["acme/Qwen2.5-0.5B", "qwen2.5-0.5b-Q5_K_M.gguf"],
  ["acme/two", "one-Q4_K_M.gguf"],
  ["acme/two", "two-Q4_K_M.gguf"],
  ["acme/draft", "draft-foo-Q8_0.gguf"],
];

/** Names that clients may send, and the file that answers. */
const asked: readonly (readonly [string, string])[] = [
  ["acme/alpha:Q4_K_M", "acme/alpha alpha-Q4_K_M.gguf"],
  ["acme/alpha:alpha-Q8_0.gguf", "acme/alpha alpha-Q8_0.gguf"],
  ["acme/alpha:Q8_0.gguf", "acme/alpha alpha-Q8_0.gguf"],
  ["acme/alpha:Q8_0:latest", "acme/alpha alpha-Q8_0.gguf"],
  ["acme/plain:tiny.gguf", "acme/plain tiny.gguf"],
  ["acme/plain:latest", "acme/plain tiny.gguf"],
  ["acme/f16:F16", "acme/f16 mymodel-F16.gguf"],
  ["acme/mtp:MTP", "acme/mtp zoo-Q5_K_M-MTP.gguf"],
  ["acme/mtp:q5_k_m", "acme/mtp zoo-Q5_K_M-MTP.gguf"],
  ["acme/bare:Q4_K_M", "acme/bare Q4_K_M.gguf"],
  ["acme/folder:Q8_0", "acme/folder sub/dir/foo-Q8_0.gguf"],
  ["acme/two:Q4_K_M", "acme/two one-Q4_K_M.gguf"],
  ["acme/two:two-Q4_K_M", "acme/two two-Q4_K_M.gguf"],
  ["Qwen2.5-0.5B", "acme/Qwen2.5-0.5B qwen2.5-0.5b-Q5_K_M.gguf"],
];

test("interface 1, Models in the cache: each is listed once under the interface's id, and answers under it", async (t) => {
  const folders = await makeFolders(t);
  for (const [repo, file] of files) await cacheModel(folders, repo, file, modelBytes(talkingModel(`${repo} ${file}`)));
  await strayFiles(folders.cacheDir);
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const listed = async (): Promise<string[]> =>
    ((await gateway.json("/beta/v1/models")).body["data"] as { id: string }[]).map(({ id }) => id);
  const ids = await listed();
  assert.deepEqual(ids, [
    "MixedCase/Model-Name-GGUF:Q4_K_M",
    "acme/Qwen2.5-0.5B:Q5_K_M",
    "acme/a:foo-a",
    "acme/alpha:Q4_K_M",
    "acme/alpha:Q8_0",
    "acme/bare:Q4_K_M",
    "acme/draft:Q8_0",
    "acme/f16:mymodel-F16",
    "acme/folder:Q8_0",
    "acme/imat:x-Q4_K_S-imat",
    "acme/instruct:foo-Instruct",
    "acme/iq:foo-IQ4_NL",
    "acme/mtp:Q5_K_M",
    "acme/plain:tiny",
    "acme/size:foo-7b",
    "acme/two:Q4_K_M",
    "acme/two:two-Q4_K_M",
    "acme/ud:name-UD-IQ1_S",
    "acme/underscore:foo_Q6_K",
    "acme/version:foo-1.0",
    "acme/xl:foo-UD-Q4_K_XL",
  ]);
  const tags = (await gateway.json("/alpha/api/tags")).body["models"] as { name: string }[];
  assert.deepEqual(new Set(tags.map(({ name }) => name)), new Set(ids));
  await t.test("interface 2, Model identifier: other names of a model, in both families", async () => {
    for (const [name, says] of asked) {
      const { hello } = answersOf(says);
      assert.equal(await gateway.ask(name), hello, name);
      const { status, body } = await gateway.json("/alpha/api/chat", chatWith(name, "hi", { stream: false }));
      assert.deepEqual([status, (body["message"] as { content: string } | undefined)?.content], [200, hello], name);
    }
  });

  // What another program puts there or takes away meanwhile.
  const late = await cacheTalker(folders, "acme/late");
  await rm(join(folders.cacheDir, "models--acme--plain"), { recursive: true });
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.deepEqual(await listed(), [...ids.filter((id) => id !== "acme/plain:tiny"), late].toSorted());
  assert.equal(await gateway.ask(late), answersOf("acme/late").hello);
});

test("the router lists by itself exactly what the scan says it does", async (t) => {
  const folders = await makeFolders(t);
  for (const [repo, file] of files) await cacheModel(folders, repo, file, modelBytes(talkingModel(`${repo} ${file}`)));
  const shards = ["big-Q8_0-00001-of-00002.gguf", "big-Q8_0-00002-of-00002.gguf"];
  for (const shard of shards) await cacheModel(folders, "acme/sharded", shard, Buffer.from(`GGUF ${shard}`));
  await cacheModel(folders, "acme/last-shard", "big-Q8_0-00002-of-00002.gguf", Buffer.from("GGUF"));
  await cacheModel(folders, "acme/vision", "eye-Q8_0.gguf", modelBytes(talkingModel("eye")));
  await cacheModel(folders, "acme/vision", "mmproj-F16.gguf", Buffer.from("GGUF projector"));
  await strayFiles(folders.cacheDir);
  const server = await startLlamaServer(t, [], { HF_HUB_CACHE: folders.cacheDir });
  const listed = ((await (await fetch(`${server.url}/models`)).json()) as { data: { id: string }[] }).data.map(
    (model) => model.id,
  );
  const scan = await createCacheScanner(folders.cacheDir).scan();
  assert.equal(scan.state, "known");
  const ours = scan.state === "known" ? scan.value.models.flatMap((model) => model.routerId ?? []) : [];
  // Two files with one tag: the router serves one of its own choice, so the scan counts neither.
  assert.deepEqual([...ours, "acme/two:Q4_K_M"].sort(), listed.toSorted());
});

/** What other programs leave in a cache: none of it is a model. */
async function strayFiles(cacheDir: string): Promise<void> {
  await mkdir(join(cacheDir, "datasets--acme--data", "snapshots"), { recursive: true });
  await mkdir(join(cacheDir, ".locks", "models--acme--alpha"), { recursive: true });
  await writeFile(join(cacheDir, "version.txt"), "1");
  await writeFile(join(cacheDir, "models--acme--alpha", "blobs", `${"0".repeat(64)}.incomplete`), "half");
  await writeFile(join(cacheDir, "models--acme--alpha", "blobs", `${"1".repeat(64)}.downloadInProgress`), "half");
}
