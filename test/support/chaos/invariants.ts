// What must hold after every step. Each throws what it found instead.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { until } from "../scratch.ts";
import type { Book, BookDocument } from "./book.ts";
import { processOf, type World } from "./world.ts";

/** The document says what the book says, at once. */
export async function checkDocument(world: World, book: Book): Promise<void> {
  const { status, body } = await world.call("GET", "/api/desired");
  assert.equal(status, 200, JSON.stringify(body));
  const difference = book.compare(body["document"]);
  assert.equal(difference, null, difference ?? "");
}

/** The document comes to say what the book says. */
export async function untilDocument(world: World, book: Book): Promise<void> {
  let seen: string | null = null;
  try {
    await until("the document", async () => {
      const { status, body } = await world.call("GET", "/api/desired");
      seen = status === 200 ? book.compare(body["document"]) : `${status} ${JSON.stringify(body)}`;
      return seen === null;
    });
  } catch {
    throw new Error(seen ?? "no document");
  }
}

/** The world is as the document says, by the gateway's own word and by the router's. Resolves with how long it took, ms. */
export async function untilConverged(world: World, wanted: BookDocument): Promise<number> {
  const began = performance.now();
  let seen = "nothing seen";
  const look = async (): Promise<boolean> => {
    const status = await world.status();
    const { body: plan } = await world.call("GET", "/api/plan");
    const open = ["actions", "running", "held"].filter((key) => (plan[key] as unknown[] | undefined)?.length !== 0);
    const { sync, generation, observedGeneration, gateway, router, source } = status;
    seen = JSON.stringify({
      sync,
      generation,
      observedGeneration,
      gateway,
      router,
      source,
      conditions: status.conditions,
      plan,
    });
    if (sync !== "Synced" || generation !== observedGeneration || !gateway.ready || !router.connected) return false;
    if (!source.valid || open.length > 0) return false;
    const difference = await routerDifference(world, wanted);
    if (difference !== null) seen = difference;
    return difference === null;
  };
  try {
    await until("converged", look);
  } catch (error) {
    throw new Error(`not converged: ${seen}`, { cause: error });
  }
  return performance.now() - began;
}

interface Listed {
  readonly id: string;
  readonly status: { readonly value: string; readonly args?: readonly string[] };
  readonly meta?: { readonly n_ctx?: number };
}

/** Asks the router itself. */
async function routerDifference(world: World, wanted: BookDocument): Promise<string | null> {
  const router = await processOf(world, null);
  if (!router) return "no router's process";
  const port = router.args[router.args.indexOf("--port") + 1] ?? "";
  const response = await fetch(`http://127.0.0.1:${port}/models`, {
    headers: { authorization: `Bearer ${router.key}`, connection: "close" },
    signal: AbortSignal.timeout(60_000),
  }).catch(() => null);
  if (!response?.ok) return `the router answers ${response?.status ?? "nothing"}`;
  const { data } = (await response.json()) as { data: readonly Listed[] };
  for (const [id, { ctxSize = wanted.context?.default }] of Object.entries(wanted.models)) {
    const found = data.find((model) => model.id === id);
    if (!found) return `the router does not list ${id}`;
    const { args = [], value } = found.status;
    const told = Number(args[args.indexOf("--ctx-size") + 1]);
    if (told !== ctxSize) return `the router starts ${id} with ${told} tokens, not ${ctxSize}`;
    const runs = found.meta?.n_ctx;
    if (value === "loaded" && runs !== undefined && runs !== ctxSize)
      return `${id} runs with ${runs} tokens, not ${ctxSize}`;
  }
  return null;
}

/** All engine processes descend from the living gateway. One that outlives its router ends after its last answer. */
export async function untilNoOrphans(world: World): Promise<void> {
  let strays: string[] = [];
  const look = async (): Promise<boolean> => {
    const engines = await world.engines();
    const routers = engines.filter(({ model, parent }) => model === null && parent === world.pid());
    const own = new Set(routers.map(({ pid }) => pid));
    strays = engines
      .filter(({ pid, parent }) => !own.has(pid) && !own.has(parent))
      .map(({ pid, parent, args }) => `${pid} (parent ${parent}) ${args.join(" ")}`);
    return strays.length === 0 && routers.length === 1;
  };
  await until("no orphans", look).catch(() => assert.deepEqual(strays, [], "processes that belong to nobody"));
}

export interface Holdings {
  readonly handles: number;
  readonly memoryMb: number;
}

/** What the gateway's process holds. */
export async function holdings(world: World): Promise<Holdings> {
  const handles = (await readdir(`/proc/${world.pid()}/fd`)).length;
  const status = await readFile(`/proc/${world.pid()}/status`, "utf8");
  return { handles, memoryMb: Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024) };
}

/** Half-written files in the model cache. */
export async function partials(world: World): Promise<string[]> {
  const names = await readdir(world.folders.cacheDir, { recursive: true }).catch(() => []);
  return names.filter((name) => /incomplete|downloadInProgress|partial|\.tmp$/i.test(name));
}
