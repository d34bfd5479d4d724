// The recipe of docs/gitops.md: its workflow against a gateway, and its Deployment's command with a ConfigMap as kubelet mounts it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { packageRoot } from "../../src/settings/settings.ts";
import { commandLine, startCommand } from "../support/command.ts";
import { mountConfigMap } from "../support/config-map.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { readProjectFile } from "../support/project-files.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { runJob, type StepResult, workflow } from "../support/workflow.ts";

const model = "ggml-org/gemma-3-270m-it-GGUF:Q8_0";
const yaml = readProjectFile("docs/gitops/gateway.yaml");
const licenseKey = "gitops-key-1c8a4e7b2d9f5036";

interface Repository {
  /** Puts the text into a checkout and runs the event's job there. */
  on(event: string, text: string, commit?: string): Promise<StepResult[]>;
  /** The comment of the last job; null: none. */
  comment(): Promise<string | null>;
}

/** A checkout of the repository that the page describes, on a runner with `model-gateway` and `gh`. */
async function makeRepository(t: TestContext, url: string): Promise<Repository> {
  const { root } = await makeFolders(t);
  const [folder, bin] = [join(root, "checkout"), join(root, "bin")];
  await mkdir(join(folder, ".github"), { recursive: true });
  await mkdir(bin);
  await copyFile(join(packageRoot, "docs", "gitops", "plan-comment.mjs"), join(folder, ".github", "plan-comment.mjs"));
  const commented = join(root, "comment.md");
  const command = commandLine([]).map((word) => `'${word}'`);
  // GitHub itself cannot be reached from here: what is commented on which pull request.
  const gh = `[ "$1 $2 $3 $GH_TOKEN" = "pr comment 17 github-token" ]\nwhile [ "$1" != --body-file ]; do shift; done\ncp "$2" '${commented}'`;
  for (const [name, script] of [
    ["model-gateway", `exec ${command.join(" ")} "$@"`],
    ["gh", gh],
  ] as const) {
    await writeFile(join(bin, name), `#!/bin/sh\nset -e\n${script}\n`);
    await chmod(join(bin, name), 0o755);
  }
  const { hostname, port } = new URL(url);
  const context = {
    "vars.GATEWAY_HOST": hostname,
    "vars.GATEWAY_PORT": port,
    "secrets.GATEWAY_LICENSE_KEY": licenseKey,
    "github.token": "github-token",
    "github.event.pull_request.number": "17",
  };
  const path = `${bin}:${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}`;
  return {
    on: async (event, text, commit = "0".repeat(40)) => {
      for (const file of ["plan.json", "plan.md"]) await rm(join(folder, file), { force: true });
      await rm(commented, { force: true });
      await writeFile(join(folder, "gateway.yaml"), text);
      return runJob(event, { folder, context, environment: { PATH: path, HOME: root, GITHUB_SHA: commit } });
    },
    comment: () => readFile(commented, "utf8").catch(() => null),
  };
}

const codes = (steps: readonly StepResult[]): (readonly [string, number | null])[] =>
  steps.map(({ name, code }) => [name, code]);

const outputOf = (steps: readonly StepResult[], step: string): string =>
  steps.flatMap(({ name, stdout, stderr }) => (name === step ? [stdout, stderr] : [])).join("");

test("the workflow: a change is planned, commented, applied, and other changes are noticed", async (t) => {
  const hub = await startLoopbackHub(t);
  const bytes = modelBytes(talkingModel("gemma"));
  hub.addRepo("ggml-org/gemma-3-270m-it-GGUF", { files: { "gemma-3-270m-it-Q8_0.gguf": bytes } });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: []\n",
    environment: { HF_ENDPOINT: hub.endpoint, GATEWAY_LICENSE_KEY: licenseKey },
  });
  await gateway.converged();
  const { on, comment } = await makeRepository(t, gateway.url);
  const status = () => gateway.gateway.status();
  const call = (path: string, init: RequestInit): ReturnType<typeof gateway.json> =>
    gateway.json(path, {
      ...init,
      headers: { ...(init.headers as object), authorization: `Bearer ${licenseKey}` },
    });
  const misspelled = yaml.replace("gemma-3", "gema-3");

  await t.test("its events are those that have a job", () => {
    assert.deepEqual(Object.keys(workflow.on), ["pull_request", "push", "schedule"]);
    assert.equal(Object.keys(workflow.jobs).length, 3);
  });

  await t.test("a pull request is validated, planned and commented, and changes nothing", async () => {
    const before = status().generation;
    const steps = await on("pull_request", yaml);
    assert.deepEqual(
      codes(steps),
      [
        ["Validate", 0],
        ["Plan", 0],
        ["Comment", 0],
      ],
      JSON.stringify(steps),
    );
    const text = (await comment()) ?? "";
    assert.match(text, /^\*\*gateway\.yaml: \d+ steps, 1 to pull \([\d.]+ MB\)/);
    assert.ok(
      text.includes(
        `| pull ${model}, ${(bytes.length / 1e6).toFixed(1)} MB | ModelAbsent | file: none → gemma-3-270m-it-Q8_0.gguf<br>revision: none → main<br>commit: none → `,
      ),
      text,
    );
    assert.equal(status().generation, before);
  });

  await t.test("a misspelled repository fails before the merge, with a comment", async () => {
    const steps = await on("pull_request", misspelled);
    assert.deepEqual(codes(steps), [
      ["Validate", 0],
      ["Plan", 1],
      ["Comment", 0],
    ]);
    assert.match(
      (await comment()) ?? "",
      /^- \*\*cannot be done\*\*: .*the hub does not have ggml-org\/gema-3-270m-it-GGUF/m,
    );
  });

  await t.test("a key that does not exist fails with its place, and nothing is planned", async () => {
    const steps = await on("pull_request", `${yaml}modles: []\n`);
    assert.deepEqual(codes(steps), [
      ["Validate", 1],
      ["Plan", null],
      ["Comment", null],
    ]);
    assert.match(outputOf(steps, "Validate"), /^gateway\.yaml:7:1: modles: unknown key \(did you mean models\?\)$/m);
    assert.equal(await comment(), null);
  });

  await t.test("a merge is applied, with its commit", async () => {
    const commit = createHash("sha1").update(yaml).digest("hex");
    const steps = await on("push", yaml, commit);
    assert.deepEqual(codes(steps), [["Apply", 0]], outputOf(steps, "Apply"));
    assert.match(outputOf(steps, "Apply"), /^synced: generation \d+\. /m);
    const { applied, models } = status();
    assert.deepEqual([applied?.revision, applied?.sha256], [commit, createHash("sha256").update(yaml).digest("hex")]);
    const ready = models.find(({ id }) => id === model)?.conditions.find(({ type }) => type === "Ready");
    assert.equal(ready?.status, "True");
  });

  await t.test("values of the document are no markup in the comment", async () => {
    const text = yaml.replace(`- ${model}`, `- { id: "${model}", preset: { grammar: "root ::= [a]|<b>@c" } }`);
    assert.deepEqual(codes(await on("pull_request", text)), [
      ["Validate", 0],
      ["Plan", 0],
      ["Comment", 0],
    ]);
    const row = (await comment())?.split("\n").find((line) => line.includes("grammar")) ?? "";
    assert.equal(row.split("|").length, 5, row);
    assert.doesNotMatch(row.replaceAll("<br>", ""), /[<@[]/);
    assert.ok(row.includes("root ::= &#91;a&#93;&#124;&#60;b>&#64;c"), row);
  });

  await t.test("every hour it is compared: a call's change fails the job, and a reset mends it", async () => {
    assert.deepEqual(codes(await on("schedule", yaml)), [
      ["Compare", 0],
      ["In force", 0],
    ]);
    await call("/api/desired?wait=true", patchWith({ context: { default: 4096 } }));
    const changed = await on("schedule", yaml);
    assert.deepEqual(codes(changed), [
      ["Compare", 2],
      ["In force", 0],
    ]);
    assert.match(
      outputOf(changed, "Compare"),
      /^~ context\.default: 4096 → 8192 {2}\(set by http:PATCH \/api\/desired, which apply leaves\)$/m,
    );
    await call("/api/desired/reset?wait=true", postWith({}));
    assert.deepEqual(codes(await on("schedule", yaml)), [
      ["Compare", 0],
      ["In force", 0],
    ]);
  });

  await t.test("what cannot come fails the merge with reason and remedy; its revert mends it", async () => {
    const steps = await on("push", misspelled, "bad0001");
    assert.deepEqual(codes(steps), [["Apply", 1]]);
    assert.match(outputOf(steps, "Apply"), /not synced: HubNotFound: .*gema-3.*\. [A-Z]/);
    assert.ok(!steps.some(({ stdout, stderr }) => (stdout + stderr).includes(licenseKey)));
    assert.deepEqual(codes(await on("push", yaml, "revert2")), [["Apply", 0]]);
    assert.equal(status().applied?.revision, "revert2");
  });
});

interface Container {
  readonly args: readonly string[];
  readonly readinessProbe: { readonly httpGet: { readonly path: string } };
  readonly livenessProbe: { readonly httpGet: { readonly path: string } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly subPath?: string }[];
}

test("the StatefulSet: a ConfigMap that is updated by its link is in force at once, with its templates", async (t) => {
  const manifests = parseAllDocuments(readProjectFile("docs/deploy/kubernetes/base/gateway.yaml"));
  const set = manifests.at(-1);
  assert.ok(set);
  const { spec } = set.toJS() as { spec: { template: { spec: { containers: readonly [Container] } } } };
  const [container] = spec.template.spec.containers;
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const mounts = Object.fromEntries(
    container.volumeMounts.map(({ name, mountPath, subPath }) => {
      assert.equal(subPath, undefined);
      return [mountPath, name === "state" ? folders.stateDir : join(folders.root, name)];
    }),
  );
  const here = (word: string): string =>
    // The longer path first: one begins with another.
    Object.entries(mounts)
      .toReversed()
      .reduce(
        (text, [path, folder]) => text.replace(path, folder),
        word.replace("0.0.0.0", "127.0.0.1").replace("--port=8484", "--port=0"),
      );

  const documentOf = (ctxSize: number): string =>
    `version: 1\nmodels: [{ id: "${alpha}", ctxSize: ${ctxSize}, chatTemplate: ./alpha.jinja }]\n`;
  const configMap = await mountConfigMap(join(folders.root, "document"), {
    "gateway.yaml": documentOf(512),
    "alpha.jinja": "one",
  });
  const secrets = join(folders.root, "secrets");
  await mkdir(secrets);
  for (const name of ["license-key", "hub-token"]) await writeFile(join(secrets, name), licenseKey);
  // The image's variables have the state folder.
  const serve = await startCommand(t, folders, container.args.map(here));
  const [, url = ""] = await serve.output(/"url":"([^"]+)"/);
  const ask = async (
    path: string,
    init: RequestInit = {},
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const headers = { ...(init.headers as object), authorization: `Bearer ${licenseKey}` };
    const response = await fetch(url + path, { ...init, headers });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const messages = [{ role: "user", content: "hi" }];
  const promptOf = async (): Promise<unknown> =>
    (await ask("/apply-template", postWith({ model: alpha, messages }))).body["prompt"];
  const inForce = async (): Promise<unknown> => {
    const { body } = await ask("/v1/models");
    const [listed] = body["data"] as readonly { readonly context_length: number }[];
    return [listed?.context_length, await promptOf()];
  };
  const becomes = (ctxSize: number, prompt: string): Promise<unknown> =>
    until(`${ctxSize} ${prompt}`, async () => JSON.stringify(await inForce()) === JSON.stringify([ctxSize, prompt]));
  await until("it is ready", async () => (await fetch(url + container.readinessProbe.httpGet.path)).status === 200);
  assert.equal((await fetch(url + container.livenessProbe.httpGet.path)).status, 200);
  await becomes(512, "one");

  await t.test("the document and its template change together", async () => {
    await configMap.update({ "gateway.yaml": documentOf(768), "alpha.jinja": "two" });
    await becomes(768, "two");
  });

  await t.test("the template alone: long before the next resync", async () => {
    const began = performance.now();
    await configMap.update({ "gateway.yaml": documentOf(768), "alpha.jinja": "three" });
    await becomes(768, "three");
    assert.ok(performance.now() - began < 30_000);
  });

  await t.test("a text that is not valid changes nothing; the next good one is applied", async () => {
    await configMap.update({ "gateway.yaml": "version: 1\nmodles: []\n", "alpha.jinja": "three" });
    const source = async (): Promise<{ valid: boolean; message: string }> =>
      (await ask("/status")).body["source"] as { valid: boolean; message: string };
    await until("it is noticed", async () => !(await source()).valid);
    assert.match((await source()).message, /gateway\.yaml:2:1: modles: unknown key \(did you mean models\?\)/);
    assert.deepEqual(await inForce(), [768, "three"]);
    const answer = await ask("/v1/chat/completions", postWith({ model: alpha, messages }));
    const { choices } = answer.body as { choices: [{ message: { content: string } }] };
    assert.equal(choices[0].message.content, answersOf("acme/alpha").hello);
    await configMap.update({ "gateway.yaml": documentOf(1024), "alpha.jinja": "four" });
    await becomes(1024, "four");
    assert.equal((await source()).valid, true);
  });

  await t.test("calls do not change the document", async () => {
    const refused = await ask("/api/desired", patchWith({ context: { default: 512 } }));
    assert.equal(refused.status, 409);
    assert.equal((refused.body["error"] as { code: string }).code, "file_managed");
  });
});
