// The llama-server router as a supervised child: start, stop, reload, state. The planner decides when.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { equalJson } from "../../core/json.ts";
import type { RouterModel, RouterSnapshot } from "../../plan/observed.ts";
import { createOrphans } from "../process/leftovers.ts";
import { exitText, type ManagedProcess, type ProcessExit } from "../process/managed-process.ts";
import { createInstances } from "./instances.ts";
import type { RouterClient } from "./router-client.ts";
import { createRouterList, type RouterList, type RouterListOptions } from "./router-list.ts";
import {
  type RouterProcess,
  type RouterProcessOptions,
  showRepos,
  startRouterProcess,
  viewName,
} from "./router-process.ts";

/** What the router reads: remembered, so that the planner sees when it must read again. */
export interface RouterInputs {
  readonly preset: string;
  readonly cache: string;
  /** Folders of the model cache that can be read whole. */
  readonly repos: readonly string[];
}

export type Router = ReturnType<typeof createRouter>;

export interface RouterOptions extends RouterProcessOptions, Omit<RouterListOptions, "instances" | "onList"> {
  readonly cacheDir: string;
  readonly reloadTimeoutMs: number;
  /** Called when its list was read, and at once when an instance is gone. */
  readonly onList?: () => void;
  readonly warn: (message: string, fields: object) => void;
}

interface Running extends RouterProcess {
  readonly list: RouterList;
}

export function createRouter(options: RouterOptions) {
  const { stateDir, cacheDir, warn, onList = () => undefined } = options;
  const instances = createInstances(warn, onList);
  const orphans = createOrphans({ stateDir, inUse: instances.usedPids, warn });
  const view = join(stateDir, viewName);
  let state = initial;
  let running: Running | null = null;
  let starting: Promise<RouterProcess> | null = null;
  /** What the view has; null: it has changed since. */
  let shown: readonly string[] | null = null;

  /** Looks at every link of the view. */
  async function show(repos: readonly string[]): Promise<void> {
    shown = null;
    await showRepos(view, cacheDir, repos);
    shown = repos;
  }

  function becomes(next: Partial<RouterState>): void {
    state = { ...state, ...next };
    options.onChange(null);
  }

  /** `isUnfitted`: its models fit nothing into memory where the preset does not say so. */
  async function start(binary: string, inputs: RouterInputs, signal: AbortSignal, isUnfitted = false): Promise<void> {
    if (running) throw new GatewayError("internal", "the router is running already");
    await show(inputs.repos);
    state = { ...state, phase: "starting" };
    starting = startRouterProcess(binary, { ...options, isUnfitted }, signal);
    const started = await starting.catch((error: unknown) => {
      becomes({ phase: "stopped" });
      throw error;
    });
    const current = { ...started, list: createRouterList(started, { ...options, instances, onList }) };
    running = current;
    void started.process.exited.then((exit) => onExit(current, exit));
    state = { ...state, loaded: inputs, freshlyStarted: true, isUnfitted };
    await current.list.refresh();
    // It may have ended in the meantime.
    if (running !== current)
      throw new GatewayError("engine_failed", `the router ended while starting: ${started.process.lastWords()}`);
    current.list.follow();
    becomes({ phase: "ready" });
  }

  function onExit(ended: Running, exit: ProcessExit): void {
    if (running !== ended) return;
    ended.list.stop();
    instances.detachAll();
    running = null;
    if (state.phase !== "stopping") {
      orphans.lookAfter(ended.process.pid);
      state = crashed(state, options.now(), `${exitText(exit)}${ownWords(ended.process)}`);
      warn("the router ended by itself", { exit: exitText(exit) });
    }
    becomes({ phase: "stopped", loaded: null, isUnfitted: false });
  }

  async function end(how: (current: Running) => Promise<ProcessExit>): Promise<void> {
    const current = running;
    if (!current) return;
    // First: from here on no request may be given to a model that ends with its router.
    instances.detachAll();
    becomes({ phase: "stopping" });
    // The router waits for open connections, and for models whose input we hold open.
    current.list.stop();
    onExit(current, await how(current));
  }

  const stop = (): Promise<void> =>
    end(async ({ client, process, list }) => {
      const models = list.models();
      // It sends no event, so it would notice a second later that its subscriber has left; and it has nothing to end.
      if (models.state === "known" && models.value.length === 0) return process.stop(0);
      await client.wake();
      return process.stop(options.stopGraceMs);
    });

  /** Errors: `router_unavailable` while it is not ready. */
  function ready(): Running {
    if (running && state.phase === "ready") return running;
    throw new GatewayError("router_unavailable", `the router is ${state.phase}`);
  }

  return {
    instances,
    start,
    stop,
    /** Kills a hanging router, at once and alone: a TERM would make it end its instances first, which respond without it. */
    kill: () =>
      end(async ({ process }) => {
        const exit = await process.kill();
        orphans.lookAfter(process.pid);
        return exit;
      }),
    reload: async (inputs: RouterInputs): Promise<void> => {
      const current = ready();
      if (!existsSync(view) || !equalJson(shown, inputs.repos)) await show(inputs.repos);
      const models = await reloadUnlessEnded(current, options.reloadTimeoutMs);
      state = { ...state, loaded: inputs, freshlyStarted: false };
      current.list.takeReloaded(models);
    },
    close: async (): Promise<void> => {
      await starting?.catch(() => undefined);
      await stop();
      await orphans.close();
    },
    refresh: async () => running?.list.refresh(),
    isReady: () => state.phase === "ready" && running?.list.silentSince() === null,
    /** The last output of the running engine. */
    lastWords: () => running?.process.lastWords() ?? "",
    /** What of it is about a failure. */
    complaints: () => complaintsIn(running?.process.lastWords() ?? ""),
    client: (): RouterClient => ready().client,
    models: () => modelsOf(running),
    snapshot: () => snapshotOf(state, running, existsSync(view)),
  };
}

/** Of its process, from start to exit. */
interface RouterState
  extends Pick<RouterSnapshot, "phase" | "freshlyStarted" | "isUnfitted" | "crashes" | "lastWords"> {
  readonly loaded: RouterInputs | null;
}

const initial: RouterState = {
  phase: "stopped",
  loaded: null,
  freshlyStarted: false,
  isUnfitted: false,
  crashes: [],
  lastWords: "",
};

/** A start that fails is the action's failure, with its own backoff. */
function crashed(state: RouterState, now: number, lastWords: string): RouterState {
  return { ...state, lastWords, crashes: state.phase === "ready" ? [...state.crashes.slice(-20), now] : state.crashes };
}

/** `hasView`: a view that was deleted with the state folder is restored by the next reload. */
function snapshotOf(
  { loaded, ...state }: RouterState,
  running: Running | null,
  hasView: boolean,
): Omit<RouterSnapshot, "binary" | "build" | "knownOptions"> {
  return {
    ...state,
    pid: running?.process.pid ?? null,
    loadedPreset: loaded?.preset ?? null,
    loadedCache: loaded && (hasView ? loaded.cache : ""),
    models: modelsOf(running),
    silentSince: running?.list.silentSince() ?? null,
  };
}

function modelsOf(running: Running | null): RouterSnapshot["models"] {
  return running?.list.models() ?? { state: "unknown", why: "the router is not running" };
}

/** If it ends in the middle, the call may get no response. */
function reloadUnlessEnded({ process, client }: Running, timeoutMs: number): Promise<readonly RouterModel[]> {
  const ended = process.exited.then((): never => {
    throw new GatewayError("router_unavailable", "the router ended while it read its preset");
  });
  return Promise.race([client.reload(timeoutMs), ended]);
}

/** The router's last errors, without output of its instances. */
function ownWords(process: ManagedProcess): string {
  const lines = process
    .lastWords()
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\[\d+\] /.test(line) && !/^[\d.]+ I /.test(line));
  return lines.length > 0 ? `: ${lines.slice(-3).join("; ")}` : "";
}

function complaintsIn(output: string): string {
  const lines = output.split("\n").filter((line) => /\b(error|failed|unable|invalid|cannot)\b/i.test(line));
  return lines.slice(-2).join("; ");
}
