// Context sizes: in the preset, in force on the router when a call says so, and nothing else disturbed.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheTalker, type GatewayFolders, makeFolders, makeTalkerFolders, talker } from "../support/folders.ts";
import { eventsOf, startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { holdAnswer } from "../support/held-answer.ts";
import { answersOf } from "../support/models.ts";
import { contextLengths } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";

/** What the engine itself says, once the model is loaded. */
function loadedContext(gateway: TestGateway, id: string): string | undefined {
  const model = gateway.gateway.status().models.find((entry) => entry.id === id);
  return model?.conditions.find((condition) => condition.type === "Loaded")?.message;
}

/** `ctx-size` of each section of the preset file that has one. */
async function presetSizes(folders: GatewayFolders): Promise<Record<string, number>> {
  const text = await readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
  return Object.fromEntries(
    text
      .split(/^(?=\[)/m)
      .map((section) => [/^\[(.+)\]$/m.exec(section)?.[1] ?? "", /^ctx-size *= *(\d+)$/m.exec(section)?.[1]] as const)
      .flatMap(([name, size]) => (size === undefined ? [] : [[name, Number(size)] as const])),
  );
}

test("interface 2, Preset file: a default and a model's own size are in it, and in force when the call answers", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\ncontext: { default: 2048 }\nmodels: [${alpha}]\n`,
  });
  await gateway.converged();
  assert.deepEqual(await contextLengths(gateway), { [alpha]: 2048, [beta]: 2048 });
  assert.deepEqual(await presetSizes(folders), { "*": 2048 });

  const { status } = await gateway.json("/api/desired?wait=true", patchWith({ models: { [beta]: { ctxSize: 1024 } } }));
  assert.equal(status, 200);
  assert.deepEqual(await contextLengths(gateway), { [alpha]: 2048, [beta]: 1024 });
  assert.deepEqual(await presetSizes(folders), { "*": 2048, [beta]: 1024 });
  const both = { [alpha]: { ctxSize: 4096 }, [beta]: { ctxSize: 512 } };
  await gateway.json("/api/desired?wait=true", patchWith({ models: both }));
  assert.deepEqual(await presetSizes(folders), { "*": 2048, [alpha]: 4096, [beta]: 512 });
  await gateway.json("/api/desired?wait=true", patchWith({ models: { [alpha]: null, [beta]: { ctxSize: 1024 } } }));
  assert.deepEqual(await presetSizes(folders), { "*": 2048, [beta]: 1024 });
  await gateway.ask(alpha);
  await gateway.ask(beta);
  await gateway.until(
    "loaded",
    () =>
      loadedContext(gateway, beta)?.startsWith("It is loaded with 1024 tokens of context.") === true &&
      loadedContext(gateway, alpha)?.startsWith("It is loaded with 2048 tokens of context.") === true,
  );

  await gateway.json("/api/desired?wait=true", patchWith({ context: null, models: { [beta]: null } }));
  assert.deepEqual(await contextLengths(gateway), { [alpha]: 8192, [beta]: 8192 });
  assert.deepEqual(await presetSizes(folders), {});
});

test("interface 4, Context size on no command line: neither there nor in its environment, at no start of the router", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\ncontext: { default: 2048 }\nmodels: [{ id: "${alpha}", ctxSize: 1024 }]\n`,
    // Somebody's own, meant for another llama-server: it would hold for every model.
    environment: { LLAMA_ARG_CTX_SIZE: "256", LLAMA_ARG_N_CTX: "256" },
  });
  const hasNone = async (pid: number | null): Promise<void> => {
    const [args = "", variables = ""] = await Promise.all(
      ["cmdline", "environ"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")),
    );
    assert.match(args, /--models-preset/);
    assert.doesNotMatch(args, /(^|\0)(-c|--ctx-size|--context-size|--n-ctx)(\0|=)/);
    assert.doesNotMatch(variables, /LLAMA_ARG_(CTX|N_CTX)/);
  };
  const first = (await gateway.converged()).router.pid;
  await hasNone(first);
  await gateway.json("/api/set-ctx-size", postWith({ model: beta, ctx_size: 512 }));
  process.kill(first ?? 0, "SIGKILL");
  await gateway.until("another router", ({ router }) => router.pid !== null && router.pid !== first);
  const second = (await gateway.converged()).router.pid;
  await hasNone(second);
  // So each model has its own.
  for (const [model, size] of [
    [alpha, 1024],
    [beta, 512],
  ] as const) {
    await gateway.ask(model);
    await gateway.until(
      "loaded",
      () => loadedContext(gateway, model)?.startsWith(`It is loaded with ${size} tokens of context.`) === true,
    );
  }
});

test("a change to one model leaves the others loaded and their streams whole, and takes no restart", async (t) => {
  const folders = await makeTalkerFolders(t);
  const [changed, idle] = [await cacheTalker(folders, "acme/changed"), await cacheTalker(folders, "acme/idle")];
  const gateway = await startTestGateway(t, { folders });
  await gateway.converged();
  await gateway.ask(changed);
  await gateway.ask(idle);
  const pid = gateway.gateway.status().router.pid;
  const held = await holdAnswer(t, gateway, talker);
  const patch = patchWith({ models: { [changed]: { ctxSize: 512 } } });
  assert.equal((await gateway.json("/api/desired?wait=true", patch)).status, 200);
  held.release();
  assert.deepEqual(await held.answer, { text: answersOf("talker").long, done: true, error: null });
  assert.equal(gateway.gateway.status().router.pid, pid);
  assert.deepEqual(
    eventsOf(gateway.gateway, "action.finished").filter((event) =>
      JSON.stringify(event.data).includes("router.restart"),
    ),
    [],
  );
  await untilLoaded(gateway, idle, talker);
});

test("people's own sections, keys and comments survive, and what would end the router becomes a comment", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const presetPath = join(folders.stateDir, "router.preset.ini");
  await writeFile(
    presetPath,
    `; mine\n[*]\nparallel = 1 ; one slot\nno-such-key = 1\n\n[${alpha}]\n# keep this\nalias = al\nthis is no line\n[acme/gone:Q8_0]\nctx-size = 512\n`,
  );
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels:\n  - { id: "${alpha}", ctxSize: 1024 }\n`,
  });
  await gateway.converged();
  const text = await readFile(presetPath, "utf8");
  for (const line of [
    "; mine",
    "parallel = 1 ; one slot",
    "; no-such-key = 1",
    "# keep this",
    "alias = al",
    "; this is no line",
    "ctx-size = 1024",
    "hf-repo = acme/gone:Q8_0",
  ]) {
    assert.ok(text.split("\n").includes(line), `${line} in\n${text}`);
  }
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  // A second look changes nothing.
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.equal(await readFile(presetPath, "utf8"), text);
});

test("what the engine refuses comes in the family's shape", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 256 }]\n`,
  });
  await gateway.converged();
  const long = "many words ".repeat(400);
  const compat = await gateway.json("/beta/v1/chat/completions", chatWith(alpha, long, { stream: true }));
  const error = compat.body["error"] as Record<string, unknown>;
  assert.deepEqual(
    [compat.status, error["code"], error["type"], error["param"], error["n_ctx"]],
    [400, "context_length_exceeded", "exceed_context_size_error", null, 256],
  );
  const native = await gateway.json("/alpha/api/chat", chatWith(alpha, long));
  assert.equal(native.status, 400);
  assert.match(String(native.body["error"]), /exceeds the available context size/);
});
