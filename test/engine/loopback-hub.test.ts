// The loopback hub against llama-server's own downloader, and a pull of ours against llama-server's own cache scan.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, it, type TestContext } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { llamaServer } from "../support/engine.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { startPulling } from "../support/pulling.ts";

const token = "hf_abcdefghijklmnopqrstuvwxyz0123456789";

interface Router {
  readonly base: string;
  /** Ids that it lists. */
  ids(): Promise<string[]>;
}

interface Listing {
  readonly data: readonly { readonly id: string }[];
}

async function startRouter(t: TestContext, environment: Readonly<Record<string, string>>): Promise<Router> {
  const server = await llamaServer();
  const port = await freePort();
  const child = spawn(server, ["--host", "127.0.0.1", "--port", String(port)], {
    env: { PATH: process.env["PATH"] ?? "", HOME: environment["HF_HUB_CACHE"] ?? "", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  cleanUp(t, () => stop(child));
  await listening(child);
  const base = `http://127.0.0.1:${port}`;
  return {
    base,
    async ids() {
      const listing: Listing = JSON.parse(await (await fetch(`${base}/models?reload=1`)).text());
      return listing.data.map((model) => model.id).sort();
    },
  };
}

async function listening(child: ChildProcess): Promise<void> {
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        if (/listening on/.test(line)) resolve();
      });
    }
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`llama-server ended:\n${said.slice(-10).join("\n")}`)));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address ? address.port : assert.fail("no port");
}

async function chat(router: Router, model: string): Promise<string> {
  const response = await fetch(`${router.base}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
  });
  return response.text();
}

describe("the loopback hub and llama-server", () => {
  it("lets llama-server download a model by itself, from the storage, without its token there", async (t) => {
    const hub = await startLoopbackHub(t, { tokens: [token] });
    const cache = await mkdtemp(join(tmpdir(), "router-cache-"));
    cleanUp(t, () => rm(cache, { recursive: true, force: true }));
    const bytes = modelBytes(talkingModel("alpha"));
    const commit = hub.addRepo("acme/alpha-GGUF", {
      files: { "README.md": Buffer.from("hi"), "alpha-Q8_0.gguf": bytes },
      gated: true,
    });
    const router = await startRouter(t, { HF_HUB_CACHE: cache, HF_ENDPOINT: hub.endpoint, HF_TOKEN: token });

    const events = new AbortController();
    cleanUp(t, () => events.abort());
    const stream = await fetch(`${router.base}/models/sse`, { signal: events.signal });
    const posted = await fetch(`${router.base}/models`, {
      method: "POST",
      body: JSON.stringify({ model: "acme/alpha-GGUF:Q8_0" }),
    });
    assert.deepEqual(await posted.json(), { success: true });
    let seen = "";
    for await (const chunk of stream.body ?? []) {
      seen += Buffer.from(chunk).toString();
      if (seen.includes("download_finished") || seen.includes("download_failed")) break;
    }
    assert.match(seen, /download_finished/);
    assert.deepEqual(await router.ids(), ["acme/alpha-GGUF:Q8_0"]);
    assert.deepEqual(
      await readFile(join(cache, "models--acme--alpha-GGUF", "snapshots", commit, "alpha-Q8_0.gguf")),
      Buffer.from(bytes),
    );
    const storage = hub.requests.filter((request) => request.origin === "storage");
    assert.ok(storage.length > 0);
    assert.equal(
      storage.some((request) => request.authorized),
      false,
    );
  });

  it("lets llama-server list and run what we pulled, the older quant after a new commit too", async (t) => {
    const { hub, pull, cacheDir } = await startPulling(t);
    const old = { "alpha-Q8_0.gguf": modelBytes(talkingModel("alpha")) };
    hub.addRepo("acme/alpha-GGUF", { files: old });
    await pull("acme/alpha-GGUF:Q8_0");
    const router = await startRouter(t, { HF_HUB_CACHE: cacheDir, LLAMA_ARG_OFFLINE: "1" });
    assert.deepEqual(await router.ids(), ["acme/alpha-GGUF:Q8_0"]);

    hub.updateRepo("acme/alpha-GGUF", { files: { ...old, "sub/alpha-Q4_0.gguf": modelBytes(talkingModel("beta")) } });
    await pull("acme/alpha-GGUF:Q4_0");
    assert.deepEqual(await router.ids(), ["acme/alpha-GGUF:Q4_0", "acme/alpha-GGUF:Q8_0"]);
    assert.match(await chat(router, "acme/alpha-GGUF:Q8_0"), /Hello from alpha, running on the real engine\./);
    assert.match(await chat(router, "acme/alpha-GGUF:Q4_0"), /Hello from beta, running on the real engine\./);
  });
});
