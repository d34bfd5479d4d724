// The commands with which a deploy tool works, against a running gateway.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { commandLine, runCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";

test("diff", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: ["${model}"]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  const run = (args: readonly string[], input?: string) => runCommand(t, folders, ["diff", ...args], {}, input);

  await t.test("without a difference: 0", async () => {
    const same = await run(["-f", folders.configPath]);
    assert.deepEqual([same.code, same.stdout], [0, `${folders.configPath} is the document of the gateway.\n`]);
  });

  await t.test("per field, of standard input: 2; nothing is changed", async () => {
    const text = `version: 1\ncontext: { default: 1024 }\nmodels:\n  - id: ${model}\n    preset: { top-k: 4 }\n`;
    const { code, stdout } = await run(["-f", "-"], text);
    assert.equal(code, 2);
    assert.equal(stdout, `+ models.${model}.preset:\n+   top-k: 4\n+ context:\n+   default: 1024\n`);
    const { generation } = gateway.gateway.status();
    const asJson = await run(["-f", "-", "--json"], text);
    assert.deepEqual(
      [asJson.code, JSON.parse(asJson.stdout)],
      [
        2,
        {
          generation,
          changes: [
            { path: `models.${model}.preset`, from: null, to: { "top-k": 4 } },
            { path: "context", from: null, to: { default: 1024 } },
          ],
        },
      ],
    );
    assert.equal(gateway.gateway.status().generation, generation);
  });

  await t.test("what a client has set is a difference from the file", async () => {
    await gateway.json("/api/set-ctx-size", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, ctx_size: 768 }),
    });
    const { code, stdout } = await run(["-f", folders.configPath]);
    assert.deepEqual([code, stdout], [2, `- models.${model}.ctxSize: 768\n`]);
  });

  await t.test("a document that is none, and none at all: 1", async () => {
    const bad = join(folders.root, "bad.yaml");
    await writeFile(bad, "version: 1\nmodls: []\nprune: 5\n");
    const { code, stdout, stderr } = await run(["-f", bad]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(stderr, `${bad}:2:1: modls: unknown key (did you mean models?)\n${bad}:3:8: prune: must be boolean\n`);
    assert.match((await run([])).stderr, /name the document with -f FILE/);
    assert.match((await run(["-f", join(folders.root, "none")])).stderr, /there is no /);
  });
});

test("status and ps", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: ["${model}"]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  const run = (...args: readonly string[]) => runCommand(t, folders, args);

  await t.test("nothing is loaded", async () => {
    const [status, ps] = [await run("status"), await run("ps")];
    assert.deepEqual([status.code, ps.code, ps.stdout], [0, 0, "No model is loaded.\n"]);
    assert.match(status.stdout, /^acme\/alpha:Q8_0 +[\d.]+ kB +\d+ +unloaded +\d+s +0 +0 +–$/m);
  });

  await t.test("a loaded model has the memory of its process", async () => {
    await gateway.ask(model);
    const { stdout } = await run("status");
    assert.match(stdout, /^Model Gateway \S+ {2}Healthy {2}Synced {2}up \d+s$/m);
    assert.match(stdout, /^acme\/alpha:Q8_0 +[\d.]+ kB +\d+ +loaded +\d+s +0 +0 +[\d.]+ MB$/m);
    assert.match(
      (await run("ps")).stdout,
      /^MODEL .*\nacme\/alpha:Q8_0 +loaded +\d+ +0 +[\d.]+ MB +[\d.]+ kB +\d+ +\d+s\n$/,
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
    assert.match(seen, /\u001b\[32mHealthy\u001b\[0m/);
    const closed = once(watching, "close");
    watching.stdin.write("\u0003");
    await closed;
  });
});
