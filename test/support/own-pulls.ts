// Pulls that a call asks for, and what there is of them afterwards: in the document, in the list, in the cache.
import type { TestContext } from "node:test";
import { entriesBelow } from "../../src/state/folder.ts";
import { cleanUp } from "./clean-up.ts";
import { startTestGateway, type TestGateway } from "./gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "./loopback-hub.ts";
import { postWith } from "./requests.ts";

export function pull(gateway: TestGateway, model: string): Promise<{ status: number; body: Record<string, unknown> }> {
  return gateway.json("/alpha/api/pull", postWith({ model, stream: false }));
}

export async function documentModels(gateway: TestGateway): Promise<unknown> {
  return ((await gateway.json("/api/desired")).body["document"] as { models?: unknown }).models ?? [];
}

export async function modelIds(gateway: TestGateway): Promise<string[]> {
  return ((await gateway.json("/beta/v1/models")).body["data"] as { id: string }[]).map(({ id }) => id);
}

/** Files and links in the cache. */
export async function leftovers(cacheDir: string): Promise<string[]> {
  const entries = await entriesBelow(cacheDir);
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
}

export function isPulling({ gateway }: TestGateway): boolean {
  return gateway.status().running.some((action) => (action as { kind: string }).kind === "model.pull");
}

export async function startWithHub(
  t: TestContext,
  yaml = "version: 1\n",
): Promise<{ hub: LoopbackHub; gateway: TestGateway }> {
  const hub = await startLoopbackHub(t);
  const gateway = await startTestGateway(t, { yaml, environment: { HF_ENDPOINT: hub.endpoint } });
  return { hub, gateway };
}

/** Each next try, up to `most`, is made at once and not after its backoff. Returns what has failed so far, and why. */
export function triesAtOnce(
  t: TestContext,
  gateway: TestGateway,
  most = Number.POSITIVE_INFINITY,
): () => readonly string[] {
  const failures: string[] = [];
  const unfollow = gateway.gateway.journal.follow(({ type, data }) => {
    if (type !== "action.failed") return;
    if (failures.push(JSON.stringify(data)) >= most) return;
    void gateway.json("/api/reconcile", { method: "POST" });
  });
  cleanUp(t, unfollow);
  return () => failures;
}
