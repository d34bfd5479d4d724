// What the hub is asked for a plan: sizes and refusals, within a time, and not again and again.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, it, type TestContext } from "node:test";
import { createHubClient } from "../../../src/hub/client.ts";
import { createHubQuestions } from "../../../src/observe/hub-answers.ts";
import type { Pull } from "../../../src/plan/whole/hub-answers.ts";
import { startPulling } from "../../support/pulling.ts";

function pullOf(model: string, revision?: string): Pull {
  const base = { key: `model/${model}`, reason: "ModelAbsent", message: `pull ${model}`, disrupts: [] };
  return { ...base, kind: "model.pull", model, revision };
}

const bytes = Buffer.alloc(3000, "eight ");
const speechLists = {
  officialVoice: () => Promise.reject(new Error("not asked")),
  modelFiles: async () => [{ path: "ggml-base.bin", size: 148 }],
};

async function started(t: TestContext) {
  const { hub, client } = await startPulling(t);
  let now = 0;
  const ask = createHubQuestions({ hub: client, lists: speechLists, now: () => now });
  const pass = (ms: number): void => {
    now += ms;
  };
  return { hub, ask, pass };
}

describe("questions to the hub", () => {
  it("answers with the files of a model, its projector included, at the commit of the revision", async (t) => {
    const { hub, ask } = await started(t);
    const files = { "demo-Q8_0.gguf": bytes, "mmproj-F16.gguf": Buffer.alloc(10), "README.md": Buffer.alloc(5) };
    const commit = hub.addRepo("acme/demo", { files });
    const answer = (await ask([pullOf("acme/demo:Q8_0")])).get("model/acme/demo:Q8_0 main");
    assert.ok(answer?.kind === "files");
    assert.deepEqual(
      [answer.commit, answer.files.map(({ path, size }) => [path, size]), answer.tree.length],
      [
        commit,
        [
          ["demo-Q8_0.gguf", 3000],
          ["mmproj-F16.gguf", 10],
        ],
        3,
      ],
    );
  });

  it("tells a misspelt repository, revision and tag from a hub that does not answer", async (t) => {
    const { hub, ask } = await started(t);
    hub.addRepo("acme/demo", { files: { "demo-Q8_0.gguf": bytes } });
    const refused = await ask([pullOf("acme/demmo:Q8_0"), pullOf("acme/demo:Q9"), pullOf("acme/demo:Q8_0", "v9")]);
    assert.deepEqual(
      [...refused.values()].map((answer) => (answer.kind === "refused" ? answer.failure.code : answer.kind)),
      ["hub_not_found", "quant_not_found", "hub_not_found"].toSorted(),
    );
    hub.failNext({ status: 503 });
    const [failed] = (await ask([pullOf("acme/demo:Q8_0")])).values();
    assert.equal(failed?.kind, "unknown");
    hub.rateLimit({ seconds: 30 });
    const [limited] = (await ask([pullOf("acme/demo:Q8_0")])).values();
    assert.equal(limited?.kind, "unknown");
    const [answered] = (await ask([pullOf("acme/demo:Q8_0")])).values();
    assert.equal(answered?.kind, "files");
  });

  it("finds a gated repository, whose files are listed without a token and refused", async (t) => {
    const { hub, ask } = await started(t);
    hub.addRepo("acme/gated", { gated: true, files: { "gated-Q8_0.gguf": bytes } });
    const [answer] = (await ask([pullOf("acme/gated:Q8_0")])).values();
    assert.ok(answer?.kind === "refused");
    assert.equal(answer.failure.code, "hub_denied");
    assert.match(answer.failure.message, /accept its terms on the hub, and set HF_TOKEN/);
  });

  it("asks once a minute for what it knows, each time for what was refused, and never for more than 64 models", async (t) => {
    const { hub, ask, pass } = await started(t);
    hub.addRepo("acme/demo", { files: { "demo-Q8_0.gguf": bytes } });
    await ask([pullOf("acme/demo:Q8_0")]);
    const first = hub.requests.length;
    pass(59_999);
    await ask([pullOf("acme/demo:Q8_0")]);
    assert.equal(hub.requests.length, first);
    pass(1);
    await ask([pullOf("acme/demo:Q8_0")]);
    assert.equal(hub.requests.length, 2 * first);
    const refused = [pullOf("acme/none:Q8_0")];
    assert.equal((await ask(refused)).get("model/acme/none:Q8_0 main")?.kind, "refused");
    hub.addRepo("acme/none", { files: { "none-Q8_0.gguf": bytes } });
    assert.equal((await ask(refused)).get("model/acme/none:Q8_0 main")?.kind, "files");
    const many = Array.from({ length: 70 }, (_, index) => pullOf(`acme/m${index}:Q8_0`));
    const kinds = [...(await ask(many)).values()].map(({ kind }) => kind);
    assert.deepEqual(
      [kinds.filter((kind) => kind === "refused").length, kinds.filter((kind) => kind === "unknown").length],
      [64, 6],
    );
  });

  it("ends with its client, and leaves what hangs after five seconds", async (t) => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    const client = createHubClient({ endpoint: `http://127.0.0.1:${address.port}/`, token: undefined });
    t.after(async () => {
      await client.close();
      server.closeAllConnections();
      server.close();
    });
    const ask = createHubQuestions({ hub: client, lists: speechLists, now: () => 0 });
    const left = new AbortController();
    const asked = ask([pullOf("acme/demo:Q8_0")], left.signal);
    left.abort(new Error("the client left"));
    await assert.rejects(asked, /the client left/);
    const began = performance.now();
    const [answer] = (await ask([pullOf("acme/demo:Q8_0")])).values();
    assert.deepEqual(answer, { kind: "unknown", why: "the hub did not answer within 5 s" });
    assert.ok(performance.now() - began >= 4_900);
  });

  it("has the sizes of what speech pulls", async () => {
    const ask = createHubQuestions({
      hub: {
        resolveRevision: async () => "",
        listTree: async () => [],
        openFile: () => Promise.reject(new Error("not asked")),
      },
      lists: speechLists,
      now: () => 0,
    });
    const base = { reason: "ModelAbsent", message: "", disrupts: [] };
    const answers = await ask([
      { ...base, kind: "transcription.pull", key: "transcription/ggml-base.bin", file: "ggml-base.bin" },
      { ...base, kind: "transcription.pull", key: "transcription/ggml-mine.bin", file: "ggml-mine.bin" },
    ]);
    assert.deepEqual(
      [...answers.values()].map((answer) => (answer.kind === "bytes" ? answer.bytes : answer.kind)),
      [148, "unknown"],
    );
  });
});
