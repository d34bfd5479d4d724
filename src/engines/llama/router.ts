// The llama-server router as a supervised child: start, stop, reload, state. The planner decides when.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { RouterModel, RouterPhase, RouterSnapshot } from "../../plan/observed.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import { freePort } from "../process/free-port.ts";
import { markerName, markerValue } from "../process/leftovers.ts";
import { exitText, type ManagedProcess, type ProcessExit, startProcess } from "../process/managed-process.ts";
import { createOrphans } from "../process/orphans.ts";
import { createInstances, type Instances } from "./instances.ts";
import { showRepos } from "./router-cache.ts";
import { createRouterClient, type RouterClient, type RouterEvent } from "./router-client.ts";
import { isPortTaken, ownWords, routerArguments, untilHealthy } from "./router-start.ts";

/** What the router reads: remembered, so that the planner sees when it must read again. */
export interface RouterInputs {
  readonly preset: string;
  readonly cache: string;
  /** Folders of the model cache that can be read whole. */
  readonly repos: readonly string[];
}

export interface Router {
  readonly instances: Instances;
  snapshot(): Omit<RouterSnapshot, "binary" | "knownOptions">;
  start(binary: string, inputs: RouterInputs, signal: AbortSignal): Promise<void>;
  reload(inputs: RouterInputs): Promise<void>;
  stop(): Promise<void>;
  /**
   * Kills a hanging router, at once and alone: a TERM would make it end its instances first, which respond without it.
   */
  kill(): Promise<void>;
  /** Stops it, and ends what is left of those before it. */
  close(): Promise<void>;
  /** Requests its list of models and updates the tables. */
  refresh(): Promise<void>;
  /** Errors: `router_unavailable` while it is not ready. */
  client(): RouterClient;
  isReady(): boolean;
  /** The last output of the running engine about a failure. */
  complaints(): string;
}

/** How often a start is tried on another port. */
const portAttempts = 3;

interface Running {
  readonly process: ManagedProcess;
  readonly client: RouterClient;
  readonly key: string;
  readonly watching: AbortController;
}

const viewName = "router-cache";

export function createRouter(options: {
  readonly presetPath: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly reloadTimeoutMs: number;
  /** Interval of health checks. */
  readonly pingMs: number;
  readonly now: () => number;
  /** Chooses a port; a test overrides it. */
  readonly choosePort?: () => Promise<number>;
  readonly onOutput: (text: string) => void;
  /** Called at every change of state, and at every event of the router. */
  readonly onChange: (event: RouterEvent | null) => void;
  /** Called when its list was read, and at once when an instance is gone. */
  readonly onList?: () => void;
  readonly warn: (message: string, fields: object) => void;
}): Router {
  const onList = options.onList ?? ((): void => undefined);
  const instances = createInstances(options.warn, onList);
  const view = join(options.stateDir, viewName);
  let phase: RouterPhase = "stopped";
  let running: Running | null = null;
  let loaded: RouterInputs | null = null;
  let freshlyStarted = false;
  let crashes: readonly number[] = [];
  let lastWords = "";
  let models: RouterSnapshot["models"] = { state: "unknown", why: "the router is not running" };
  let silentSince: number | null = null;
  /** Lists are numbered as they are asked for: an older one that arrives late is dropped. */
  let asked = 0;
  let arrived = 0;
  const orphans = createOrphans({ stateDir: options.stateDir, inUse: instances.usedPids, warn: options.warn });

  function becomes(next: RouterPhase): void {
    phase = next;
    options.onChange(null);
  }

  async function start(binary: string, inputs: RouterInputs, signal: AbortSignal): Promise<void> {
    if (running) throw new GatewayError("internal", "the router is running already");
    await showRepos(view, options.cacheDir, inputs.repos);
    phase = "starting";
    for (let attempt = 1; ; attempt++) {
      try {
        return await startOnce(binary, inputs, signal);
      } catch (error) {
        if (attempt === portAttempts || signal.aborted || !isPortTaken(error)) throw error;
        phase = "starting";
      }
    }
  }

  async function startOnce(binary: string, inputs: RouterInputs, signal: AbortSignal): Promise<void> {
    const port = await (options.choosePort ?? freePort)();
    const key = randomBytes(24).toString("base64url");
    const started = await startProcess({
      path: binary,
      args: routerArguments(port, options.presetPath),
      environment: engineEnvironment(options.environment, {
        LLAMA_API_KEY: key,
        // Relative to its working folder, which remains after the state folder is moved away: models still load.
        HF_HUB_CACHE: viewName,
        // A model whose worker is lost aborts, and would have a debugger print its stack before it ends.
        GGML_NO_BACKTRACE: "1",
        [markerName]: markerValue(options.stateDir),
      }),
      workingDir: options.stateDir,
      onOutput: options.onOutput,
    }).catch((error: unknown) => {
      becomes("stopped");
      throw error;
    });
    const current: Running = {
      process: started,
      key,
      client: createRouterClient(`http://127.0.0.1:${port}`, key),
      watching: new AbortController(),
    };
    running = current;
    void started.exited.then((exit) => onExit(current, exit));
    try {
      await untilHealthy(current, { ...options, signal });
    } catch (error) {
      // It may have ended by itself already.
      if (running === current) phase = "stopping";
      await started.stop(options.stopGraceMs);
      throw error;
    }
    loaded = inputs;
    freshlyStarted = true;
    silentSince = null;
    await refresh();
    // It may have ended in the meantime.
    if (running !== current)
      throw new GatewayError("engine_failed", `the router ended while starting: ${started.lastWords()}`);
    void watch(current);
    startPinging(current);
    becomes("ready");
  }

  function onExit(ended: Running, exit: ProcessExit): void {
    if (running !== ended) return;
    const asked = phase === "stopping";
    ended.watching.abort();
    void ended.client.close();
    instances.detachAll();
    running = null;
    loaded = null;
    silentSince = null;
    models = { state: "unknown", why: "the router is not running" };
    if (!asked) {
      orphans.lookAfter(ended.process.pid);
      // A start that fails is the action's failure, with its own backoff.
      if (phase === "ready") crashes = [...crashes.slice(-20), options.now()];
      lastWords = `${exitText(exit)}${ownWords(ended.process)}`;
      options.warn("the router ended by itself", { exit: exitText(exit) });
    }
    becomes("stopped");
  }

  async function stop(): Promise<void> {
    if (!running) return;
    const current = running;
    const isWatched = phase === "ready";
    // First: from here on no request may be given to a model that ends with its router.
    instances.detachAll();
    becomes("stopping");
    // The router waits for open connections, and for models whose input we hold open.
    current.watching.abort();
    if (isWatched) await current.client.wake();
    onExit(current, await current.process.stop(options.stopGraceMs));
  }

  /** Follows the router's events; a router without them is polled by the loop alone. */
  async function watch(current: Running): Promise<void> {
    while (running === current && !current.watching.signal.aborted) {
      try {
        await current.client.watch(
          (event) => {
            // A big model reports its loading many times a second, and nothing else has changed by that.
            if (isProgress(event)) options.onChange(event);
            else void refresh().then(() => options.onChange(event));
          },
          current.watching.signal,
          () => void refresh(),
        );
      } catch (error) {
        if (current.watching.signal.aborted) return;
        const failure = toGatewayError(error);
        if (failure.code === "not_supported") return;
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }

  async function endOf(current: Running): Promise<never> {
    await current.process.exited;
    throw new GatewayError("router_unavailable", "the router ended while it read its preset");
  }

  async function refresh(): Promise<void> {
    const current = running;
    if (!current) return;
    // Deleted with the state folder: the next reload restores it.
    if (loaded && !existsSync(view)) loaded = { ...loaded, cache: "" };
    const number = ++asked;
    try {
      const list: readonly RouterModel[] = await current.client.models();
      if (running !== current || number < arrived) return;
      arrived = number;
      await instances.update(current.process.pid, current.key, list);
      if (running !== current || number < arrived) return;
      models = { state: "known", value: list };
      silentSince = null;
      onList();
    } catch (error) {
      if (running !== current || number < arrived) return;
      const isNews = silentSince === null;
      silentSince ??= options.now();
      models = { state: "unknown", why: toGatewayError(error).message };
      if (isNews) options.onChange(null);
    }
  }

  /** A hanging router sends no events, and nothing else shows it. */
  function startPinging(current: Running): void {
    const timer = setInterval(() => {
      if (phase === "ready") void current.client.healthy().then((healthy) => (healthy ? undefined : refresh()));
    }, options.pingMs);
    timer.unref();
    void current.process.exited.then(() => clearInterval(timer));
  }

  return {
    instances,
    start,
    refresh,
    isReady: () => phase === "ready" && silentSince === null,
    complaints: () => {
      const lines = running?.process.lastWords().split("\n") ?? [];
      return lines
        .filter((line) => /\b(error|failed|unable|invalid|cannot)\b/i.test(line))
        .slice(-2)
        .join("; ");
    },
    client: () => {
      if (!running || phase !== "ready") throw new GatewayError("router_unavailable", `the router is ${phase}`);
      return running.client;
    },
    reload: async (inputs) => {
      if (!running) throw new GatewayError("router_unavailable", "the router is not running");
      await showRepos(view, options.cacheDir, inputs.repos);
      // If it ends in the middle, the call may get no response.
      await Promise.race([running.client.reload(options.reloadTimeoutMs), endOf(running)]);
      loaded = inputs;
      freshlyStarted = false;
      await refresh();
    },
    stop,
    kill: async () => {
      if (!running) return;
      const current = running;
      instances.detachAll();
      becomes("stopping");
      current.watching.abort();
      onExit(current, await current.process.kill());
      orphans.lookAfter(current.process.pid);
    },
    close: async () => {
      await stop();
      await orphans.close();
    },
    snapshot: () => ({
      phase,
      pid: running?.process.pid ?? null,
      loadedPreset: loaded?.preset ?? null,
      loadedCache: loaded?.cache ?? null,
      freshlyStarted,
      crashes,
      lastWords,
      models,
      silentSince,
    }),
  };
}

/** Progress of a load, not a change of state. */
export function isProgress({ data }: RouterEvent): boolean {
  return typeof data === "object" && data !== null && "progress" in data;
}
