// The commands with which a deploy tool works, against a running gateway.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { commandHere, commandLine, runCommand, startCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";

test("diff", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: ["${model}"]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  const other = join(folders.root, "other.yaml");
  const run = (...args: readonly string[]) => commandHere(folders, ["diff", ...args]);
  const diff = async (text: string, ...flags: readonly string[]) => {
    await writeFile(other, text);
    return run("-f", other, ...flags);
  };

  await t.test("without a difference: 0", async () => {
    const same = await run("-f", folders.configPath);
    assert.deepEqual([same.code, same.stdout], [0, `${folders.configPath} is the document of the gateway.\n`]);
  });

  await t.test("per field, of standard input: 2; nothing is changed", async () => {
    const text = `version: 1\ncontext: { default: 1024 }\nmodels:\n  - id: ${model}\n    preset: { top-k: 4 }\n`;
    const { code, stdout } = await runCommand(t, folders, ["diff", "-f", "-"], {}, text);
    assert.equal(code, 2);
    assert.equal(stdout, `+ models.${model}.preset:\n+   top-k: 4\n+ context:\n+   default: 1024\n`);
    const { generation } = gateway.gateway.status();
    const asJson = await diff(text, "--json");
    assert.deepEqual(
      [asJson.code, JSON.parse(asJson.stdout)],
      [
        2,
        {
          generation,
          changes: [
            { path: `models.${model}.preset`, from: null, to: { "top-k": 4 }, setBy: null },
            { path: "context", from: null, to: { default: 1024 }, setBy: null },
          ],
        },
      ],
    );
    assert.equal(gateway.gateway.status().generation, generation);
  });

  await t.test("a secret is not shown", async () => {
    const token = "hf_diff0a1b2c3d4e5f6a7b8c9d";
    const text = `version: 1\nmodels: [{ id: "${model}", preset: { grammar: "${token}" } }]\n`;
    const [shown, asJson] = [await diff(text), await diff(text, "--json")];
    assert.match(shown.stdout, /^\+ {3}grammar: "\(redacted\)"$/m);
    for (const { stdout, stderr } of [shown, asJson]) assert.ok(!(stdout + stderr).includes(token));
  });

  await t.test("what a client has set is a difference from the file", async () => {
    await gateway.json("/api/set-ctx-size", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, ctx_size: 768 }),
    });
    const { code, stdout } = await run("-f", folders.configPath);
    const note = "set by http:POST /api/set-ctx-size, which apply leaves";
    assert.deepEqual([code, stdout], [2, `- models.${model}.ctxSize: 768  (${note})\n`]);
    const changed = await diff(`version: 1\nmodels: [{ id: "${model}", ctxSize: 512 }]\n`);
    assert.deepEqual([changed.code, changed.stdout], [2, `~ models.${model}.ctxSize: 768 → 512\n`]);
  });

  await t.test("a document that is none, and none at all: 1", async () => {
    const bad = join(folders.root, "bad.yaml");
    await writeFile(bad, "version: 1\nmodls: []\nprune: 5\n");
    const { code, stdout, stderr } = await run("-f", bad);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(stderr, `${bad}:2:1: modls: unknown key (did you mean models?)\n${bad}:3:8: prune: must be boolean\n`);
    assert.match((await run()).stderr, /name the document with -f FILE/);
    assert.match((await run("-f", join(folders.root, "none"))).stderr, /there is no /);
  });
});

test("status and ps", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: ["${model}"]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  const run = (...args: readonly string[]) => commandHere(folders, args);

  await t.test("nothing is loaded", async () => {
    await gateway.until("its need is known", ({ models }) =>
      models.every(({ conditions }) => conditions.some(({ type, status }) => type === "Fits" && status === "True")),
    );
    const [status, ps] = [await runCommand(t, folders, ["status"]), await runCommand(t, folders, ["ps"])];
    assert.deepEqual([status.code, ps.code, ps.stdout], [0, 0, "No model is loaded.\n"]);
    assert.match(status.stdout, /^acme\/alpha:Q8_0 +[\d.]+ kB +\d+ +unloaded +\d+s +0 +0 +needs \d+ MiB$/m);
  });

  await t.test("a loaded model has the memory of its process", async () => {
    await gateway.ask(model);
    const { stdout } = await run("status");
    assert.match(stdout, /^Model Gateway \S+ {2}Healthy {2}Synced {2}up \d+s$/m);
    assert.match(stdout, /^acme\/alpha:Q8_0 +[\d.]+ kB +\d+ +loaded +\d+s +0 +0 +\d+ MiB$/m);
    assert.match(
      (await run("ps")).stdout,
      /^MODEL .*\nacme\/alpha:Q8_0 +[\d.]+ kB +\d+ +loaded +\d+s +0 +0 +\d+ MiB\n$/,
    );
    const [listed] = JSON.parse((await run("ps", "--json")).stdout) as { pid: number; memoryBytes: number }[];
    const words = (await readFile(`/proc/${listed?.pid}/cmdline`, "utf8")).split("\0");
    assert.ok(words.includes(model), words.join(" "));
    const [, resident = "0"] = /^VmRSS:\s*(\d+)/m.exec(await readFile(`/proc/${listed?.pid}/status`, "utf8")) ?? [];
    const share = (listed?.memoryBytes ?? 0) / (1024 * Number(resident));
    assert.ok(share > 0.8 && share < 1.25, `${listed?.memoryBytes} and ${resident} kB`);
  });

  await t.test("which text is applied, and when the last pass was", async () => {
    const { body } = await gateway.json("/status");
    const sha256 = createHash("sha256").update(yaml).digest("hex");
    const applied = body["applied"] as Record<string, unknown>;
    assert.deepEqual(
      [applied["sha256"], applied["revision"], applied["by"]],
      [sha256, null, `file:${sha256.slice(0, 12)}`],
    );
    assert.equal(body["generation"], body["observedGeneration"]);
    const before = Date.parse(String(body["lastPass"]));
    assert.ok(before <= Date.now());
    await gateway.json("/api/reconcile?wait=true", { method: "POST" });
    const { body: after } = await gateway.json("/status");
    assert.ok(Date.parse(String(after["lastPass"])) > before);
  });

  await t.test("--watch draws again until it is interrupted, and is for terminals", async (st) => {
    const refused = await run("status", "--watch");
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /--watch needs a terminal/);
    // `script` gives it a terminal of its own.
    const line = commandLine(["status", "--watch", "--state", folders.stateDir]).join(" ");
    const watching = spawn("script", ["-qefc", line, "/dev/null"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { PATH: process.env["PATH"], HOME: folders.root, TERM: "xterm-256color" },
    });
    cleanUp(st, async () => void (watching.exitCode === null && watching.kill("SIGKILL")));
    let seen = "";
    for await (const text of watching.stdout) {
      seen += String(text);
      // Two screens, each from the top, in colors.
      if (seen.split("\u001b[H").length > 2) break;
    }
    assert.ok(seen.includes("\u001b[32mHealthy\u001b[0m"), seen);
    const closed = once(watching, "close");
    watching.stdin.write("\u0003");
    await closed;
  });
});

test("logs", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const licenseKey = "logs-key-8f1d3a7c5b9e4f02a6d8";
  const environment = { GATEWAY_LICENSE_KEY: licenseKey, HF_TOKEN: "hf_logs0a1b2c3d4e5f" };
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${alpha}", "${beta}"]\n`,
    environment,
  });
  await gateway.converged();
  const run = (...args: readonly string[]) => runCommand(t, folders, ["logs", ...args], environment);
  const get = (path: string, key = licenseKey): Promise<Response> =>
    fetch(gateway.url + path, { headers: key === "" ? {} : { authorization: `Bearer ${key}` } });
  const ask = (model: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${licenseKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
    });
  assert.equal((await ask(alpha)).status, 200);
  assert.equal((await ask(beta)).status, 200);

  await t.test("each model has its own lines, the router has the rest", async () => {
    for (const [model, other] of [
      [alpha, beta],
      [beta, alpha],
    ] as const) {
      const { code, stdout } = await run(model);
      assert.equal(code, 0);
      assert.ok(stdout.includes(`loading model '${model}'`), stdout);
      assert.ok(!stdout.includes(other));
      assert.match(stdout, /^\d{4}-\d\d-\d\dT[\d:.]+Z [\d.]+ I slot +release: /m);
    }
    const router = await (await get("/api/logs?model=router")).text();
    assert.match(router, /spawning server instance with name=acme\/beta:Q8_0/);
    assert.ok(!router.includes("slot "));
    const all = await (await get("/api/logs?tail=3000")).text();
    const times = all
      .trimEnd()
      .split("\n")
      .map((line) => line.slice(0, 24));
    assert.deepEqual(times, times.toSorted());
    assert.match(all, /^\S+Z acme\/alpha:Q8_0 [\d.]+ I slot /m);
    assert.equal((await (await get("/api/logs?tail=2")).text()).split("\n").length, 3);
  });

  await t.test("-f goes on with new lines, of the model alone", async (st) => {
    const following = await startCommand(st, folders, ["logs", "acme/ALPHA:q8_0", "-f", "--tail", "0"], environment);
    await ask(beta);
    // When it follows cannot be seen from here: requests until it has a line.
    const seen = following.output(/slot +release/);
    const asking = setInterval(() => void ask(alpha), 100);
    await seen.finally(() => clearInterval(asking));
    following.process.kill("SIGINT");
    const { stdout } = await following.exited;
    assert.ok(!stdout.includes(beta));
    assert.ok(!stdout.includes("loading model"));
  });

  await t.test("it needs a license key; names that are no model's are refused", async () => {
    assert.equal((await get("/api/logs", "")).status, 401);
    assert.equal((await get("/api/logs?model=acme/none")).status, 404);
    assert.equal((await get("/api/logs?tail=-1")).status, 400);
    assert.match((await run("acme/none")).stderr, /acme\/none/);
  });

  await t.test("after the gateway has ended they are read from its files, which hold no key", async () => {
    const router = await readFile(`/proc/${gateway.gateway.status().router.pid}/environ`, "utf8");
    const [, routerKey = ""] = /LLAMA_API_KEY=([^\0]+)/.exec(router) ?? [];
    assert.ok(routerKey.length > 20);
    await gateway.gateway.stop();
    const kept = await run("acme/alpha:q8_0");
    assert.equal(kept.code, 0);
    assert.match(kept.stdout, /exit command received|cleaning up/);
    assert.match((await run()).stdout, /^\S+Z router [\d.]+ I /m);
    const none = await run("acme/none");
    assert.equal(none.code, 1);
    assert.match(
      none.stderr,
      /no output of acme\/none is kept; there is that of acme\/alpha:Q8_0, acme\/beta:Q8_0, router/,
    );
    assert.equal((await run("-f")).code, 1);
    const dir = join(folders.stateDir, "logs");
    const files = await readdir(dir);
    assert.deepEqual(files.toSorted(), ["acme--alpha--Q8_0.log", "acme--beta--Q8_0.log", "router.log"]);
    for (const file of files) {
      assert.equal((await stat(join(dir, file))).mode & 0o777, 0o600);
      const text = await readFile(join(dir, file), "utf8");
      for (const secret of [licenseKey, environment.HF_TOKEN, routerKey]) assert.ok(!text.includes(secret), file);
    }
  });
});
