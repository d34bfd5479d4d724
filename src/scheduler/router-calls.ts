// What the scheduler has the router do, and the RPC workers before it; the outcome of each call is an event.
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import { causeIn, isSettingsFault } from "../core/load-output.ts";
import type { Router } from "../engines/llama/router.ts";
import type { RpcGate } from "./rpc-gate.ts";
import type { Handlers, Runner } from "./run.ts";

type Calls = Pick<Handlers, "checkWorkers" | "releaseWorkers" | "load" | "explainEnd" | "unload" | "readList">;

/** What is watched while a model is loaded. */
export interface LoadWatch {
  /** The world is another. */
  refresh(): void;
  /** Its process is about to start, once that is resolved; null: at once. */
  begin(id: string): Promise<void> | null;
  /** Of a load that ended early, with the last output: what it needed and what there was; null: memory was not short. */
  shortage(id: string, output: string): string | null;
}

/** `outputSince`: what a model's processes have printed since then, line by line. */
export function routerCalls(
  { send }: Runner,
  {
    router,
    gate,
    memory,
    outputSince,
  }: {
    readonly router: Router;
    readonly gate: RpcGate;
    readonly memory: LoadWatch;
    readonly outputSince: (id: string, since: number) => Promise<readonly string[]>;
  },
): Calls {
  async function failureOf(call: () => Promise<void>): Promise<GatewayError | null> {
    try {
      await call();
      await router.refresh();
      return null;
    } catch (error) {
      return toGatewayError(error);
    }
  }

  async function load(id: string): Promise<void> {
    const ready = memory.begin(id);
    if (ready) await ready;
    send({ kind: "loadSent", error: await failureOf(() => router.client().load(id)) });
  }

  async function unload(id: string): Promise<void> {
    const error = await failureOf(async () => {
      await router.refresh();
      if (mayBeLoaded(id)) await router.client().unload(id);
    });
    send({ kind: "unloadSent", id, error });
  }

  /** The router refuses to unload a model that is not loaded, or that it does not know. */
  function mayBeLoaded(id: string): boolean {
    const { phase, models } = router.snapshot();
    if (phase !== "ready" || models.state === "unknown") return phase === "ready";
    return models.value.some((model) => model.id === id && model.value !== "unloaded");
  }

  async function checkWorkers(id: string, isLate: boolean): Promise<void> {
    const verdict = gate.check(id, isLate);
    send({ kind: "workersChecked", verdict: verdict instanceof Promise ? await verdict : verdict });
  }

  async function explainEnd(id: string, since: number): Promise<void> {
    const complaints = router.complaints() || "the engine ended while loading it";
    const shortage = memory.shortage(id, router.lastWords());
    const [workers, lines] = await Promise.all([gate.explain(), outputSince(id, since)]);
    const said = causeIn(lines) ?? complaints;
    const isShort = shortage !== null;
    const why = isShort ? `${said}; ${shortage}` : said;
    send({ kind: "loadEnded", why, isShort, isFault: !isShort && isSettingsFault(lines), ...workers });
  }

  return {
    checkWorkers: ({ id, isLate }) => void checkWorkers(id, isLate),
    releaseWorkers: gate.release,
    load: ({ id }) => void load(id),
    explainEnd: ({ id, since }) => void explainEnd(id, since),
    unload: ({ id }) => void unload(id),
    readList: () => void router.refresh(),
  };
}
