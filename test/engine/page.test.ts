// The status page in a real headless Chromium, against one gateway with the real engine: every flow that a person has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { whisperServer } from "../support/engine.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, slowModel, talkingModel } from "../support/models.ts";
import { openPage } from "../support/page.ts";
import { assertPageFiles } from "../support/page-files.ts";
import { chatWith } from "../support/requests.ts";
import { startWorker } from "../support/rpc-worker.ts";
import { until } from "../support/scratch.ts";
import { addSpeechRepos, spokenWords } from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

const licenseKey = "page-key-8f1d3a7c5b9e4f02a6d8";
const withKey = { headers: { authorization: `Bearer ${licenseKey}` } };

function lineOf(text: string, part: string): number {
  return text.slice(0, text.indexOf(part)).split("\n").length;
}

test("the status page", async (t) => {
  const hub = await startLoopbackHub(t);
  const fresh = modelBytes(talkingModel("fresh"));
  hub.addRepo("acme/fresh-GGUF", {
    files: { "fresh-Q8_0.gguf": fresh, "fresh-Q4_K_M.gguf": fresh },
    downloads: 1234,
    likes: 5,
    card: { license: "other", license_name: "acme-community" },
  });
  const slowBytes = modelBytes(slowModel("slow"));
  hub.addRepo("acme/large-GGUF", { files: { "large-Q8_0.gguf": slowBytes } });
  hub.pace("large-Q8_0.gguf", 2_000_000);
  addSpeechRepos(hub);
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const beta = await cacheTalker(folders, "acme/beta");
  await cacheModel(folders, "acme/slow", "slow-Q8_0.gguf", slowBytes);
  const slow = "acme/slow:Q8_0";
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\ncontext:\n  default: 4096\nmodels:\n  - ${alpha}\n  - ${slow}\n`,
    environment: { HF_ENDPOINT: hub.endpoint, GATEWAY_LICENSE_KEY: licenseKey, GATEWAY_MODELS_MAX: "2" },
    flags: ["--whisper-server", await whisperServer()],
  });
  await gateway.converged();
  const json = async (path: string): Promise<Record<string, unknown>> => (await gateway.json(path, withKey)).body;
  const { page, asked, faults, assertAccessible, assertLooks, picture } = await openPage(t, gateway.url);
  const chat = async (model: string, content?: string, signal: AbortSignal | null = null): Promise<string> => {
    const request = chatWith(model, content, { stream: true });
    const headers = { ...withKey.headers, "content-type": "application/json" };
    return (await fetch(`${gateway.url}/v1/chat/completions`, { ...request, headers, signal })).text();
  };
  const section = (name: string) => page.getByRole("region", { name, exact: true });
  const dialog = page.getByRole("dialog");
  const said = (text: string | RegExp) => page.getByRole("status").filter({ hasText: text }).first().waitFor();
  const row = (id: string) => page.getByRole("row").filter({ hasText: id });
  const go = (name: string) => page.getByRole("navigation").getByRole("link", { name, exact: true }).click();

  await t.test(
    "a browser gets the page, an API client the line; nothing inline, nothing from elsewhere, below 60 kB",
    () => assertPageFiles(gateway.url),
  );

  await t.test("asks for a license key, and keeps it for this tab only", async () => {
    await page.goto(gateway.url);
    const field = page.getByLabel("License key");
    await field.fill("wrong");
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByRole("alert").waitFor();
    await assertAccessible("the form for the key");
    await field.fill(licenseKey);
    await page.keyboard.press("Enter");
    await page.getByText("Ready", { exact: true }).waitFor();
    assert.deepEqual(await page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]"), [1, 0, ""]);
    await page.reload();
    await page.getByText("Ready", { exact: true }).waitFor();
  });

  await t.test("shows desired beside observed beside next step, and follows by one stream of events", async () => {
    const cells = await row(slow).getByRole("cell").allTextContents();
    assert.deepEqual(cells.slice(0, 3), ["context 4096", "unloaded", "loads with the first request"]);
    assert.equal((await row(beta).getByRole("cell").allTextContents())[0], "not named");
    assert.equal(
      asked.filter((path) => path.startsWith("/api/events")).length,
      4,
      "one per key and per load of the page",
    );
    // That nothing is asked while nothing happens can only be waited for.
    await until("a moment without an event", async () => {
      const last = gateway.gateway.journal.lastId();
      await page.waitForTimeout(300);
      const before = asked.length;
      await page.waitForTimeout(500);
      if (gateway.gateway.journal.lastId() !== last) return false;
      assert.deepEqual(asked.slice(before), []);
      return true;
    });
  });

  await t.test("loads, pins, sets a context size, ejects", async () => {
    await page.getByRole("button", { name: `Load ${alpha}` }).click();
    await row(alpha).getByText("loaded", { exact: true }).waitFor();
    await page.getByRole("button", { name: `Open ${alpha}` }).press("Enter");
    await assertAccessible("the dialog of a model");
    await dialog.getByRole("button", { name: "Pin" }).press("Space");
    await said("stays loaded");
    await dialog.getByLabel("Context size in tokens").fill("2048");
    await page.keyboard.press("Enter");
    await said(/context size of .* is 2048/);
    await page.keyboard.press("Escape");
    await row(alpha).getByText("context 2048, pinned").waitFor();
    assert.deepEqual((await json("/api/desired"))["document"], {
      version: 1,
      context: { default: 4096 },
      models: [{ id: alpha, pinned: true, ctxSize: 2048 }, slow],
    });
    await page.getByRole("button", { name: `Load ${alpha}` }).click();
    await page.getByRole("button", { name: `Eject ${alpha}` }).click();
    await said("is unloaded");
    await row(alpha).getByText("unloaded", { exact: true }).waitFor();
  });

  await t.test("finds a model on the hub, pulls it with progress, cancels another", async () => {
    await page.getByRole("button", { name: "Pull a model" }).click();
    await dialog.getByLabel(/Search the hub/).fill("large");
    await dialog.getByRole("button", { name: "acme/large-GGUF" }).click();
    await dialog.getByRole("button", { name: "Pull Q8_0" }).click();
    await dialog.getByText(/ MB of .* MB .*\/s .* left/).waitFor();
    await picture("pull");
    await assertAccessible("a pull");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await gateway.until("cancelled", ({ running }) => running.length === 0);
    await dialog.getByLabel(/Search the hub/).fill("fresh");
    await dialog.getByText("license acme-community").waitFor();
    await dialog.getByRole("button", { name: "acme/fresh-GGUF" }).press("Enter");
    await dialog.getByText("License: acme-community").waitFor();
    await dialog.getByRole("row", { name: /^Q8_0 \d+ kB \d+ MiB, fits/ }).waitFor();
    await dialog.getByRole("button", { name: "Pull Q8_0" }).click();
    await dialog.getByText("acme/fresh-GGUF:Q8_0 is here.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    const ids = (await json("/v1/models"))["data"] as { readonly id: string }[];
    assert.deepEqual(ids.map(({ id }) => id).toSorted(), [alpha, beta, "acme/fresh-GGUF:Q8_0", slow].toSorted());
  });

  await t.test("removes a model after a question that names its bytes", async () => {
    await page.getByRole("button", { name: "Open acme/fresh-GGUF:Q8_0" }).click();
    await dialog.getByRole("button", { name: "Remove…" }).click();
    const button = dialog.getByRole("button", { name: /^Delete \d+ kB of files$/ });
    await button.waitFor();
    await button.click();
    await said(/is deleted: \d+ kB in \d+ files/);
    await row("acme/fresh-GGUF:Q8_0").waitFor({ state: "detached" });
    const ids = (await json("/v1/models"))["data"] as { readonly id: string }[];
    assert.ok(!ids.some(({ id }) => id === "acme/fresh-GGUF:Q8_0"));
  });

  await t.test("shows requests in flight, and cancels one: its client gets an error", async () => {
    const answer = chat(slow, "forever");
    await section("Requests in flight").getByText("is answered").waitFor();
    await page.getByRole("button", { name: /^Cancel request/ }).click();
    await said("is cancelled");
    assert.match(await answer, /"code":"cancelled"/);
    await gateway.until("idle", ({ inFlight }) => Object.keys(inFlight).length === 0);
    await section("Requests in flight").waitFor({ state: "detached" });
    await row(slow)
      .getByRole("cell")
      .nth(8)
      .getByText(/\ds ago/)
      .waitFor();
  });

  await t.test("the roster of RPC workers, and speech", async () => {
    const worker = await startWorker(t);
    await page.getByLabel("Worker, HOST:PORT").fill(worker);
    await page.keyboard.press("Enter");
    await said("is a worker");
    await section("RPC workers").getByText("Answering", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Turn RPC mode on" }).press("Enter");
    await said("Models run with the workers");
    assert.deepEqual((await json("/api/desired"))["document"], {
      version: 1,
      context: { default: 4096 },
      rpc: { mode: "rpc", workers: [worker] },
      models: [{ id: alpha, pinned: true, ctxSize: 2048 }, slow],
    });
    await page.getByRole("button", { name: "Turn RPC mode off" }).press("Enter");
    await said("on this machine only");
    await page.getByRole("button", { name: `Remove ${worker}` }).press("Enter");
    await said("no worker any more");
    const speech = section("Speech");
    await speech.getByLabel("Voice").fill("bad voice");
    await page.keyboard.press("Enter");
    await speech.getByRole("alert").waitFor();
    await speech.getByLabel("Voice").fill("en_US-nosuch-low");
    await page.keyboard.press("Enter");
    await speech.getByRole("alert").filter({ hasText: "there is no voice" }).waitFor();
    await speech.getByLabel("Transcription model").fill("ggml-said.en.bin");
    await page.keyboard.press("Enter");
    await speech.getByText("idle", { exact: true }).waitFor();
    const form = new FormData();
    form.set("file", new Blob([someSound()]));
    const heard = await fetch(`${gateway.url}/v1/audio/transcriptions`, { ...withKey, method: "POST", body: form });
    assert.match(await heard.text(), new RegExp(spokenWords));
    await speech.getByText("ready", { exact: true }).waitFor();
    await speech.getByRole("button", { name: "Turn off" }).press("Enter");
    await said(/^Transcription model .*: off$/);
    const { speech: left } = (await json("/api/desired"))["document"] as { readonly speech?: object };
    assert.deepEqual(left ?? {}, {});
  });

  await t.test("edits the document: the problem at its line, the plan before it is applied", async () => {
    await go("Document");
    const text = page.getByLabel("The document as YAML");
    const before = await text.inputValue();
    await text.fill(before.replace("default: 4096", "default: many"));
    await section("Document")
      .getByRole("button", { name: `Line ${lineOf(before, "default: 4096")}` })
      .waitFor();
    assert.match(
      (await page.getByRole("list", { name: "Problems" }).textContent()) ?? "",
      /context\.default.*integer|number/,
    );
    assert.ok(await page.getByRole("button", { name: "Review and apply" }).isDisabled());
    await assertAccessible("the editor with a problem");
    await picture("problem");
    await text.fill(before.replace("default: 4096", "default: 1024"));
    await page.getByText(/ctx-size: 4096 → 1024/).waitFor();
    await page.getByRole("button", { name: "Review and apply" }).click();
    await dialog.getByText("preset.write").waitFor();
    await assertAccessible("the plan");
    await picture("plan");
    await dialog.getByRole("button", { name: "Apply" }).click();
    await said(/Applied: generation \d+/);
    assert.match(await text.inputValue(), /default: 1024/);
  });

  await t.test("shows what a generation changed, and rolls back", async () => {
    await gateway.converged();
    await go("History");
    const { generation } = await json("/api/history");
    await page.getByRole("button", { name: `Open generation ${String(generation)}` }).click();
    await dialog.getByText("context.default").waitFor();
    assert.deepEqual(await dialog.locator("del, ins").allTextContents(), ["4096", "1024"]);
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: `Open generation ${Number(generation) - 1}` }).click();
    await assertAccessible("a generation");
    await dialog.getByRole("button", { name: /^Roll back/ }).click();
    await said(/Rolled back: generation/);
    const document = (await json("/api/desired"))["document"] as { readonly context: object };
    assert.deepEqual(document.context, { default: 4096 });
  });

  await t.test("chats with a model, and its logs are live", async () => {
    await go("Chat");
    await page.getByRole("combobox", { name: /^Model/ }).selectOption(beta);
    await page.getByLabel("Message", { exact: true }).fill("hi");
    await page.keyboard.press("Enter");
    await page.getByText(answersOf("acme/beta").hello).waitFor();
    await assertAccessible("a chat");
    await go("Logs");
    await page.getByLabel("Engine").selectOption(beta);
    const lines = page.getByRole("region", { name: "Lines" });
    await lines.filter({ hasText: "model" }).waitFor();
    await page.getByLabel("Search").fill("no line has this");
    await until("no line", async () => (await lines.textContent()) === "");
    await page.getByLabel("Search").fill("");
    const length = (await lines.textContent())?.length ?? 0;
    await chat(beta);
    await until("new lines", async () => ((await lines.textContent())?.length ?? 0) > length);
  });

  await t.test("gives the addresses to copy", async () => {
    await go("Clients");
    await page.getByRole("button", { name: /^Copy: OpenAI SDKs/ }).click();
    await said("Copied");
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), `${gateway.url}/v1`);
  });

  await t.test("is accessible in light, dark and 360 px, where nothing is cut off", async () => {
    for (const place of ["Document", "History", "Logs", "Chat", "Clients"]) {
      await go(place);
      await page.getByRole("heading", { level: 2 }).first().waitFor();
      await assertLooks(place);
    }
    await go("Overview");
    const stop = new AbortController();
    const answer = chat(slow, "forever", stop.signal);
    await section("Requests in flight").getByText("is answered").waitFor();
    await page.getByRole("button", { name: `Load ${alpha}` }).focus();
    const preview = new RegExp(`${alpha} takes \\d+ MiB; unloaded for it: ${beta}\\.`);
    await section("Memory").getByText(preview).waitFor();
    await assertLooks("Overview");
    stop.abort();
    await answer.catch(() => undefined);
  });

  await t.test("shows what takes the memory, and what a load would unload, also to a keyboard", async () => {
    const memory = section("Memory");
    const parts = await memory.getByRole("listitem").allTextContents();
    for (const part of [/^Other programs \d/, /^acme\/slow:Q8_0 \d+ MiB$/, /^Free for models \d/, /^Kept free \d/])
      assert.ok(
        parts.some((text) => part.test(text)),
        `${part} in ${parts.join("; ")}`,
      );
    const load = page.getByRole("button", { name: `Load ${alpha}` });
    assert.match((await load.getAttribute("title")) ?? "", /unloaded for it: acme\/beta:Q8_0\.$/);
    await load.press("Enter");
    await row(beta).getByText("unloaded", { exact: true }).waitFor();
    await row(alpha).getByText("loaded", { exact: true }).waitFor();
  });

  await t.test("says that the connection is lost, and nothing failed unseen", async () => {
    assert.deepEqual(faults(), []);
    await gateway.gateway.stop();
    await page.getByText("Connection lost").waitFor();
  });
});
