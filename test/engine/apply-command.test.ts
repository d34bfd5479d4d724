// `apply` and `wait`, as a deploy job has them, against a running gateway.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { commandHere, runCommand, startCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { patchWith } from "../support/requests.ts";

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

test("apply and wait", async (t) => {
  const hub = await startLoopbackHub(t);
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${alpha}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const run = (args: readonly string[]) => commandHere(folders, args);
  const path = join(folders.root, "deploy.yaml");
  const apply = async (text: string, ...flags: readonly string[]) => {
    await writeFile(path, text);
    return run(["apply", "-f", path, ...flags]);
  };
  const status = () => gateway.gateway.status();
  const both = `version: 1\nmodels: ["${alpha}", { id: "${beta}", ctxSize: 512 }]\n`;

  await t.test("a dry run has the plan, and changes nothing", async () => {
    const before = status().generation;
    const { code, stdout } = await apply(both, "--dry-run");
    assert.equal(code, 2, stdout);
    assert.match(stdout, /preset/);
    assert.equal((await apply(`version: 1\nmodels: ["${alpha}"]\n`, "--dry-run")).code, 0);
    assert.equal(status().generation, before);
    assert.deepEqual((await apply(both, "--dry-run", "--wait")).code, 1);
    assert.deepEqual((await apply(both, "--timeout", "5")).code, 1);
  });

  await t.test("it waits until exactly this text is in force", async () => {
    const before = status().generation;
    const { code, stdout } = await apply(both, "--wait", "--revision", "3f2a9c1");
    assert.equal(code, 0);
    const [first, second] = stdout.split("\n");
    assert.equal(
      first,
      `${path} is applied: generation ${before + 1}, sha256 ${hashOf(both).slice(0, 12)}, revision 3f2a9c1.`,
    );
    assert.match(second ?? "", new RegExp(`^synced: generation ${before + 1}\\. `));
    const { applied, generation, observedGeneration } = status();
    assert.deepEqual(
      [applied?.sha256, applied?.revision, applied?.by],
      [hashOf(both), "3f2a9c1", "http:PUT /api/desired"],
    );
    assert.deepEqual([generation, observedGeneration], [before + 1, before + 1]);
    const { body } = await gateway.json("/v1/models");
    const served = (body["data"] as { id: string; context_length: number }[]).find(({ id }) => id === beta);
    assert.equal(served?.context_length, 512);
  });

  await t.test("the same text again changes nothing, and may have another revision", async () => {
    const { generation } = status();
    const { code, stdout } = await apply(both, "--wait", "--revision", "v2", "--json");
    assert.equal(code, 0);
    const outcome = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual([outcome["met"], outcome["generation"]], [true, generation]);
    assert.equal(status().applied?.revision, "v2");
    assert.match((await apply(both)).stdout, /; it changes nothing\.$/m);
  });

  await t.test("what calls have set otherwise stays, and is named", async () => {
    await gateway.json("/api/desired?wait=true", patchWith({ models: { [beta]: { ctxSize: 1024 } } }));
    const { code, stdout, stderr } = await apply(both, "--wait");
    assert.equal(code, 1);
    const field = `models.${beta}.ctxSize`;
    assert.match(stderr, /^model-gateway: not synced: Overridden: /);
    assert.ok(stderr.includes(`\`reset ${field}\``), stderr);
    const kept = `Calls have set other values, which stay: ${field} (http:PATCH /api/desired). \`reset\` takes them out.`;
    assert.equal(stdout.split("\n")[1], kept);
    assert.equal((await run(["reset"])).code, 0);
    await gateway.json("/api/desired?wait=true", patchWith({ suspend: false }));
    assert.equal((await apply(both, "--wait")).code, 0, "a field that the text leaves open may be set");
    assert.equal((await run(["reset"])).code, 0);
    assert.doesNotMatch((await apply(both)).stdout, /Calls have set/);
  });

  await t.test("a text that is not valid is refused whole, with each problem's place", async () => {
    const before = status();
    const text = `version: 1\nmodls: []\nmodels: ["${alpha}"]\nprune: 5\n`;
    const { code, stdout, stderr } = await runCommand(t, folders, ["apply", "-f", "-", "--wait"], {}, text);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(
      stderr,
      "<stdin>:2:1: modls: unknown key (did you mean models?)\n<stdin>:4:8: prune: must be boolean\n",
    );
    // What only the gateway decides.
    const option = await apply(`version: 1\nmodels: [{ id: "${alpha}", preset: { log-file: x } }]\n`);
    assert.equal(option.code, 1);
    assert.match(option.stderr, /^\S+:2:\d+: models\[0\]\.preset\.log-file: preset key log-file is not on the list/);
    assert.deepEqual([status().generation, status().applied], [before.generation, before.applied]);
  });

  await t.test("what cannot come ends the wait at once, with the condition's reason and remedy", async () => {
    const { code, stderr } = await apply(`version: 1\nmodels: ["${alpha}", "acme/none:Q8_0"]\n`, "--wait");
    assert.equal(code, 1);
    assert.match(stderr, /^model-gateway: not synced: HubNotFound: .*acme\/none.*\. [A-Z]/);
    const absent = await run(["wait", "--for", "model=acme/nothing:Q8_0"]);
    assert.match(absent.stderr, /^model-gateway: acme\/nothing:Q8_0 not ready: NotFound: /);
    assert.equal((await apply(both, "--wait")).code, 0);
  });

  await t.test("wait --for ready, a model, a generation, a revision", async (st) => {
    const { generation } = status();
    assert.equal((await run(["wait", "--for", "ready"])).code, 0);
    const model = await run(["wait", "--for", `model=${alpha}`, "--json"]);
    const { met, reason } = JSON.parse(model.stdout) as Record<string, unknown>;
    assert.deepEqual([model.code, met, reason], [0, true, "OnDemand"]);
    assert.equal((await run(["wait", "--for", "synced", "--generation", `${generation}`])).code, 0);
    const late = await run(["wait", "--for", "synced", "--generation", `${generation + 1}`, "--timeout", "0"]);
    assert.equal(late.code, 1);
    assert.match(late.stderr, /^model-gateway: not synced within 0 s: NotObserved: /);
    assert.match((await run(["wait"])).stderr, /wait needs --for synced, --for ready or --for model=ID/);
    const waiting = await startCommand(st, folders, ["wait", "--for", "synced", "--revision", "v9"]);
    assert.equal((await apply(both, "--revision", "v9")).code, 0);
    assert.equal((await waiting.exited).code, 0);
  });

  await t.test("another text that is applied meanwhile ends the wait for the first one", async (st) => {
    hub.addRepo("acme/slow", { files: { "slow-Q8_0.gguf": Buffer.alloc(1 << 20) } });
    // So that it stays under way.
    hub.pace("slow-Q8_0.gguf", 1024);
    const first = await startCommand(
      st,
      folders,
      ["apply", "-f", "-", "--wait"],
      {},
      `version: 1\nmodels: ["acme/slow:Q8_0"]\n`,
    );
    await first.output(/is applied/);
    assert.equal((await apply(both, "--revision", "v10")).code, 0);
    const { code, stderr } = await first.exited;
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^model-gateway: not synced: Superseded: Another text is applied by now: revision v10, sha256 [0-9a-f]{64}, /,
    );
  });
});

test("a wait that begins before the gateway does ends when it is ready, and with it if it never comes", async (t) => {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  const never = await commandHere(folders, ["wait", "--for", "ready", "--timeout", "1"]);
  assert.equal(never.code, 1);
  assert.match(never.stderr, /no gateway runs on the state folder/);
  const waiting = await startCommand(t, folders, ["wait", "--for", "ready"]);
  await startTestGateway(t, { folders, yaml: 'version: 1\nmodels: ["acme/alpha:Q8_0"]\n' });
  const { code, stdout } = await waiting.exited;
  assert.equal(code, 0);
  assert.match(stdout, /^ready: generation 1\. /);
});
