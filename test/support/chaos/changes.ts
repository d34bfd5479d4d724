// The changes that people and programs make: edits of the file and calls of the API. Each keeps the book, and resolves when it
// is acknowledged, or `false` where it was not, which only a fault at the same time may cause.
import assert from "node:assert/strict";
import { open, rename, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { errorCatalog } from "../../../src/core/error-catalog.ts";
import { until } from "../scratch.ts";
import { ask } from "./ask.ts";
import { type Book, type BookPatch, bookYaml } from "./book.ts";
import { partials, untilDocument } from "./invariants.ts";
import { chaosAnswer, chaosFile, guest, idOf } from "./models.ts";
import type { Change, SaveStyle } from "./plan.ts";
import type { Allowance, Streams } from "./streams.ts";
import type { Reply, World } from "./world.ts";

export interface ChaosDeps {
  readonly world: World;
  readonly book: Book;
  readonly streams: Streams;
  /** Allows something to answers until the step is over. */
  readonly allow: (allowance: Allowance) => void;
  /** Something else may make the change fail. */
  readonly faulty: boolean;
}

/** An RPC worker that is not there. */
const worker = "127.0.0.1:1";
/** Pulled and never had. */
export const neverHad = "fay";

export async function makeChange(deps: ChaosDeps, change: Change): Promise<boolean> {
  switch (change.kind) {
    case "file-size":
      return saveFile(deps, { models: { [idOf(change.model)]: { ctxSize: change.ctx } } }, change.style);
    case "file-default":
      return saveFile(deps, { context: { default: change.ctx } }, change.style);
    case "file-guest":
      return toggleGuest(deps, change.style);
    case "file-broken":
      return breakFile(deps, change.variant, change.style);
    case "api-size":
      return call(deps, "/api/set-ctx-size", { model: idOf(change.model), ctx_size: change.ctx }, sizePatch(change));
    case "api-patch": {
      const patch = sizePatch(change);
      return edit(deps, patch, () => deps.world.call("PATCH", "/api/desired?wait=true", patch));
    }
    case "api-eject":
      return call(deps, "/api/eject-model", { model: idOf(change.model) }, {});
    case "api-unload":
      return call(deps, "/alpha/api/generate", { model: idOf(change.model), keep_alive: 0 }, {});
    case "api-repull":
      return repull(deps, change.model, change.ctx);
    case "api-roster":
      return changeRoster(deps, change.wish);
    case "chat-size":
      return call(
        deps,
        "/alpha/api/chat",
        {
          model: idOf(change.model),
          stream: false,
          messages: [{ role: "user", content: "go on" }],
          options: { num_ctx: change.ctx },
        },
        isInForce(deps.book, change) ? {} : sizePatch(change),
      );
    case "pull-left":
      return leavePull(deps, change.share);
    default:
      return change satisfies never;
  }
}

function sizePatch({ model, ctx }: { readonly model: string; readonly ctx: number }): BookPatch {
  return { models: { [idOf(model)]: { ctxSize: ctx } } };
}

/** A chat with the size that the model has anyway changes nothing. */
function isInForce(book: Book, { model, ctx }: { readonly model: string; readonly ctx: number }): boolean {
  const { models, context } = book.wanted();
  return (models[idOf(model)]?.ctxSize ?? context?.default) === ctx;
}

function call(deps: ChaosDeps, path: string, body: object, patch: BookPatch): Promise<boolean> {
  return edit(deps, patch, () => deps.world.call("POST", path, body));
}

async function edit({ book, faulty }: ChaosDeps, patch: BookPatch, send: () => Promise<Reply>): Promise<boolean> {
  const attempt = book.attempt(patch);
  const { status, body } = await send();
  if (status === 200 && body["error"] === undefined) {
    attempt.done();
    return true;
  }
  attempt.unknown();
  assert.ok(faulty, `refused with nothing else going on: ${status} ${JSON.stringify(body)}`);
  assert.ok(status === null || isDocumented(status, body), `no documented error: ${status} ${JSON.stringify(body)}`);
  return false;
}

function isDocumented(status: number, { error }: Record<string, unknown>): boolean {
  const code = (error as { code?: string } | null)?.code;
  if (code !== undefined) return Object.hasOwn(errorCatalog, code);
  const statuses = Object.values(errorCatalog).map((kind) => kind.status);
  return typeof error === "string" && error !== "" && (status === 200 || statuses.includes(status));
}

async function save(path: string, text: string, style: SaveStyle): Promise<void> {
  if (style === "write") return writeFile(path, text);
  if (style === "rename") {
    await writeFile(`${path}~`, text);
    return rename(`${path}~`, path);
  }
  const file = await open(path, "w");
  try {
    const half = Math.floor(text.length / 2);
    await file.write(text.slice(0, half));
    await delay(20);
    await file.write(text.slice(half));
  } finally {
    await file.close();
  }
}

async function saveFile({ world, book, faulty }: ChaosDeps, patch: BookPatch, style: SaveStyle): Promise<boolean> {
  await save(world.folders.configPath, bookYaml(book.saveFile(patch)), style);
  // A gateway that is killed meanwhile reads it at its next start.
  if (!faulty) await untilDocument(world, book);
  return true;
}

const broken = ["models: [", "version: 1\nmodels:\n\t- x\n", "version: 1\nsurprise: true\n", "version: 1\nmodels: 3\n"];

async function breakFile({ world, book }: ChaosDeps, variant: number, style: SaveStyle): Promise<boolean> {
  const { configPath } = world.folders;
  await save(configPath, broken[variant] ?? "", style);
  await until("the file is found wrong", async () => !(await world.status()).source.valid);
  await untilDocument(world, book);
  await save(configPath, bookYaml(book.file()), style);
  await until("the file is right again", async () => (await world.status()).source.valid);
  return true;
}

/** In by the file, which has it pulled; out by the file, and its files by a call, as `prune` is off. */
async function toggleGuest(deps: ChaosDeps, style: SaveStyle): Promise<boolean> {
  const { world, book } = deps;
  const id = idOf(guest);
  const isIn = Object.hasOwn(book.file().models, id);
  await save(
    world.folders.configPath,
    bookYaml(book.saveFile({ models: { [id]: isIn ? null : { preset: { threads: 1 } } } })),
    style,
  );
  await untilDocument(world, book);
  if (isIn) {
    await until("it can be removed", () => isListed(world, id));
    return call(deps, "/api/remove-model", { model: id }, {});
  }
  await until("the guest is here", () => isListed(world, id));
  const { outcome, detail } = await ask(await world.target(), {
    dialect: "compat",
    model: id,
    expected: chaosAnswer(guest),
    limitMs: 300_000,
    onText: () => undefined,
  });
  assert.ok(outcome === "whole" || deps.faulty, `the guest's answer: ${outcome} ${detail}`);
  return true;
}

async function isListed(world: World, id: string): Promise<boolean> {
  const { body } = await world.call("GET", "/beta/v1/models");
  return ((body["data"] ?? []) as { id: string }[]).some((model) => model.id === id);
}

async function repull(deps: ChaosDeps, name: string, ctx: number): Promise<boolean> {
  const { world, book } = deps;
  const id = idOf(name);
  deps.allow({ why: `${name} is removed and pulled again`, codes: ["model_not_found"], model: name });
  const isThere = await isListed(world, id);
  if (isThere && !(await call(deps, "/api/remove-model", { model: id }, { models: { [id]: null } }))) return false;
  // Absent, and then as the file has it; or by an earlier try there again without its settings.
  const fresh = book.wanted().models[id] ?? book.file().models[id] ?? {};
  if (!(await call(deps, "/alpha/api/pull", { model: id }, { models: { [id]: fresh } }))) return false;
  const patch: BookPatch = { models: { [id]: { ctxSize: ctx, preset: { threads: 1 } } } };
  return edit(deps, patch, () => world.call("PATCH", "/api/desired?wait=true", patch));
}

async function changeRoster(deps: ChaosDeps, wish: "add" | "rpc" | "single" | "remove"): Promise<boolean> {
  const { mode, workers } = deps.book.wanted().rpc ?? { mode: "single", workers: [] };
  const isIn = workers.includes(worker);
  const toggle = (next: BookPatch["rpc"], path: string, body: object): Promise<boolean> =>
    call(deps, path, body, next ? { rpc: next } : {});
  if (wish === "remove" && isIn)
    return toggle({ mode: "single", workers: [] }, "/api/rpc/workers/remove", { workers: [worker] });
  if (wish === "single" && mode === "rpc")
    return toggle({ mode: "single", workers }, "/api/rpc/mode", { mode: "single" });
  if (!isIn) return toggle({ mode, workers: [worker] }, "/api/rpc/workers", { workers: [worker] });
  const other = mode === "rpc" ? "single" : "rpc";
  return toggle({ mode: other, workers }, "/api/rpc/mode", { mode: other });
}

/** The client leaves in the middle: nothing of it stays, in the cache or in the document. */
async function leavePull({ world, book }: ChaosDeps, share: number): Promise<boolean> {
  const path = `${neverHad}-${chaosFile}`;
  const before = world.hub.sentBytes(path);
  const leaving = new AbortController();
  const pulling = world.call("POST", "/alpha/api/pull", { model: idOf(neverHad) }, leaving.signal);
  const size = world.sizes.get(neverHad) ?? 0;
  await until("a part of it has come", () => world.hub.sentBytes(path) - before >= share * size);
  leaving.abort();
  await pulling;
  await untilDocument(world, book);
  await until("nothing half-written is left", async () => (await partials(world)).length === 0);
  return true;
}
