// A gateway whose document is left to the file, and one that writes calls' changes into it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { runCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { codeOf, contextLengths, messageOf } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { highVoice, lowVoice, rates, startSpeechGateway } from "../support/speech.ts";

test("--writes file: calls change nothing, and are told the field and its line", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/gamma", { files: { "gamma-Q8_0.gguf": Buffer.from("not asked for") } });
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const beta = await cacheTalker(folders, "acme/beta");
  const yaml = `# team\nversion: 1\nmodels:\n  - { id: "${alpha}", ctxSize: 1024 }\n`;
  // Set by a call before the file had the authority.
  const before = await startTestGateway(t, { folders, yaml });
  await before.json("/api/desired?wait=true", patchWith({ prune: true, models: { [alpha]: { ctxSize: 512 } } }));
  await before.gateway.stop();
  const gateway = await startTestGateway(t, {
    folders,
    flags: ["--writes", "file"],
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const documentNow = async (): Promise<unknown> => (await gateway.json("/api/desired")).body["document"];
  const declared = { version: 1, models: [{ id: alpha, ctxSize: 1024 }] };

  await t.test("the start drops what calls had set", async () => {
    assert.deepEqual(await documentNow(), declared);
    assert.equal((await contextLengths(gateway))[alpha], 1024);
  });

  await t.test("every call that would change the document answers 409 with the field and the line", async () => {
    const file = folders.configPath;
    for (const [path, init, message] of [
      [
        "/api/desired",
        patchWith({ models: { [alpha]: { ctxSize: 512 } } }),
        `models.${alpha}.ctxSize is set in ${file}:4`,
      ],
      ["/api/desired", patchWith({ models: { [alpha]: { keep: true } } }), `models.${alpha}.keep is left to ${file}:4`],
      ["/api/desired", patchWith({ prune: true }), `prune is left to ${file}, and`],
      ["/api/desired", { method: "PUT", body: '{"version":1}' }, `models is set in ${file}:3`],
      [
        "/api/desired?apply=true",
        { method: "PUT", headers: { "content-type": "application/yaml" }, body: "version: 1\nprune: true\n" },
        "",
      ],
      ["/api/set-ctx-size", postWith({ model: alpha, ctx_size: 512 }), `models.${alpha}.ctxSize is set in ${file}:4`],
      ["/api/set-ctx-size", postWith({ model: beta, ctx_size: 512 }), `models.${beta} is left to ${file}:3`],
      ["/api/remove-model", postWith({ model: alpha }), `models.${alpha} is set in ${file}:4`],
      ["/api/rpc/workers", postWith({ worker: "127.0.0.1:50052" }), "rpc"],
      ["/api/history/0/rollback", { method: "POST" }, "models is set in"],
    ] as const) {
      const answer = await gateway.json(path, init);
      assert.deepEqual([answer.status, codeOf(answer)], [409, "file_managed"], `${path} ${messageOf(answer)}`);
      assert.ok(messageOf(answer).includes(message), messageOf(answer));
    }
    assert.deepEqual(await documentNow(), declared);
  });

  await t.test("a pull of another model is refused; one of the file's is waited for", async () => {
    const pull = await fetch(`${gateway.url}/api/pull`, postWith({ model: "acme/gamma:Q8_0", stream: false }));
    assert.match(await pull.text(), /models\.acme\/gamma:Q8_0 is left to .*, and only the file changes the document/);
    const own = await fetch(`${gateway.url}/api/pull`, postWith({ model: alpha, stream: false }));
    assert.deepEqual([own.status, await own.json()], [200, { status: "success" }]);
    assert.deepEqual(await documentNow(), declared);
  });

  await t.test("a chat's own context size is ignored", async () => {
    const answer = await fetch(`${gateway.url}/beta/v1/chat/completions`, chatWith(alpha, "hi", { ctx_size: 512 }));
    assert.equal(answer.status, 200);
    await answer.text();
    assert.equal((await contextLengths(gateway))[alpha], 1024);
    const native = await fetch(
      `${gateway.url}/api/chat`,
      postWith({ model: alpha, stream: false, messages: [{ role: "user", content: "hi" }], options: { num_ctx: 512 } }),
    );
    assert.equal(native.status, 200);
    await native.text();
    assert.equal((await contextLengths(gateway))[alpha], 1024);
  });

  await t.test("a dry run answers, other models may be deleted, and the file's saves are in force", async () => {
    assert.equal((await gateway.json("/api/desired?dryRun=true", patchWith({ prune: true }))).status, 200);
    assert.equal((await gateway.json("/api/remove-model", postWith({ model: beta }))).status, 200);
    const { generation } = await gateway.converged();
    await folders.writeConfig(yaml.replace("1024", "768"));
    await gateway.until("applied", (status) => status.sync === "Synced" && status.generation === generation + 1);
    assert.equal((await contextLengths(gateway))[alpha], 768);
  });
});

test("--writes file: another voice than the document's is refused before it is downloaded", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--writes", "file"] });
  await gateway.converged();
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  const before = gateway.hub.requests.length;
  const other = await gateway.json("/v1/audio/speech", postWith({ input: "hi", voice: highVoice }));
  assert.deepEqual([other.status, codeOf(other)], [409, "file_managed"]);
  assert.ok(messageOf(other).includes(`speech.synthesis.voice is set in ${gateway.configPath}:2`), messageOf(other));
  const fetched = gateway.hub.requests.slice(before).filter(({ path }) => path.includes("high"));
  assert.deepEqual(fetched, []);
  assert.equal((await gateway.json("/api/desired")).body["generation"], 1);
});

test("--write-back: what calls change is in the file, and the file's saves count as before", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const yaml = `# team\nversion: 1\nmodels:\n  - ${alpha} # ours\n`;
  const gateway = await startTestGateway(t, { folders, yaml, flags: ["--write-back"] });
  await gateway.converged();
  const text = (): Promise<string> => readFile(folders.configPath, "utf8");

  await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 512 }));
  const wanted = `# team\nversion: 1\nmodels:\n  - id: ${alpha} # ours\n    ctxSize: 512\n`;
  await until("it is written", async () => (await text()) === wanted);
  const { generation, source } = await gateway.converged();
  assert.deepEqual([generation, source.reason], [2, "Applied"]);
  const differs = async (): Promise<unknown[]> =>
    (await gateway.json("/api/desired")).body["differsFromFile"] as unknown[];
  await until("the text is noted as applied", async () => (await differs()).length === 0);

  await folders.writeConfig(wanted.replace("512", "768"));
  await gateway.until("applied", (status) => status.generation === 3 && status.sync === "Synced");
  assert.equal((await contextLengths(gateway))[alpha], 768);
  const back = await runCommand(t, folders, ["rollback", "2"]);
  assert.equal(back.code, 0, back.stderr);
  await until("it is written", async () => (await text()) === wanted);
});
