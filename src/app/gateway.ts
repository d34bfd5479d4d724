// Starts a gateway and stops it, in order.
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { PullTimes } from "../commands/pull-patience.ts";
import { GatewayError } from "../core/errors.ts";
import { watchFileSource } from "../desired/file-source.ts";
import type { InstallProgress } from "../engines/install/build.ts";
import { endLeftovers } from "../engines/process/leftovers.ts";
import { isLoopback } from "../http/auth/guards.ts";
import { listen, requireFreePort, requireKeys } from "../http/server/listen.ts";
import { createOpenAnswers } from "../http/server/open-answers.ts";
import { keyFileName } from "../keys/key-file.ts";
import { type LicenseKeys, openLicenseKeys } from "../keys/license-keys.ts";
import type { Settings } from "../settings/settings.ts";
import { removeTemporaries } from "../state/atomic-file.ts";
import { lockState, requireUnlocked } from "../state/lock.ts";
import { lookMs } from "../state/repeat.ts";
import type { Journal } from "../status/journal.ts";
import type { StatusReport } from "../status/report.ts";
import { type Core, createCore } from "./core.ts";
import { createServer, type Running } from "./server.ts";
import { checkOpenFiles, keepPartialsClean, unlessDiskRefuses, watchCache, writeFirstDocument } from "./start-up.ts";

export interface Gateway {
  /** `http://HOST:PORT` */
  readonly url: string;
  readonly journal: Journal;
  status(): StatusReport;
  /** Whether a request needs a license key. */
  needsKey(): boolean;
  /** Ends everything that was started; safe to call twice. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly onInstallProgress?: (progress: InstallProgress) => void;
  /** Aborts the start; everything that was started ends. */
  readonly signal?: AbortSignal;
  /** For tests, which cannot wait as long as people do. */
  readonly pulls?: PullTimes;
}

/** ms for error frames and other last bytes to be sent. */
const flushMs = 250;

/** Errors: `invalid_request` for settings that cannot work; `shutting_down`, `cancelled` where the start was aborted. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { settings, logger, onInstallProgress = () => undefined } = options;
  const keys = openLicenseKeys({
    path: join(settings.stateDir, keyFileName),
    single: settings.licenseKey,
    createCommand: settings.command("key", "create", "NAME"),
    now: Date.now,
    warn: (message, fields) => logger.warn(fields, message),
  });
  requireKeys(settings.host, keys, settings.command);
  // Nothing is written by a gateway that could not serve.
  await requireUnlocked(settings.stateDir);
  await requireFreePort(settings);
  const lock = await lockState(settings.stateDir);
  try {
    const ended = await endLeftovers(settings.stateDir);
    if (ended.length > 0) logger.warn({ pids: ended }, "ended engine processes that an earlier gateway left behind");
    await unlessDiskRefuses(logger, () => removeTemporaries(settings.stateDir));
    const core = await createCore(settings, logger, lock, onInstallProgress);
    await unlessDiskRefuses(logger, () => writeFirstDocument(core));
    await core.logs.open();
    await checkOpenFiles(core);
    return await run(core, keys, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function run(core: Core, keys: LicenseKeys, { signal, pulls = {} }: GatewayOptions): Promise<Gateway> {
  const { settings, events, loop, store, lock } = core;
  let stopped: Promise<void> | null = null;
  let stoppingSince: number | null = null;
  const running: Running = {
    core,
    keys,
    pulls,
    answers: createOpenAnswers(),
    status: () => core.status(stoppingSince),
    leaving: new AbortController(),
    stopping: new AbortController(),
    cutOff: new AbortController(),
    files: watchFileSource({
      path: settings.configPath,
      store,
      presetAllow: settings.presetAllow,
      writesBack: settings.writesBack,
      presetPath: core.presetPath,
      onPreset: loop.wakeLater,
      onStatus: (found) => events.emit("sourceChecked", found),
      warn: core.warn,
      pollMs: lookMs,
    }),
  };
  const { files, status } = running;
  const stopping = running.stopping.signal;
  // Each request that waits, each response in flight listens to one of them.
  setMaxListeners(0, stopping, running.cutOff.signal);
  const app = createServer(running);
  const stop = (): Promise<void> => {
    stoppingSince ??= Date.now();
    running.leaving.abort();
    return (stopped ??= leave().then(() => shutDown(running, app)));
  };
  let isServing = false;
  /** A load balancer takes a moment to see that this gateway is not ready any more. */
  const leave = async (): Promise<void> => {
    if (isServing && settings.stopDelayMs > 0) await delay(settings.stopDelayMs);
  };
  try {
    // On the other core, while this one opens the port.
    void core.engine.prepare(stopping);
    const url = await listen(app, settings);
    lock.announce(url);
    core.logger.info({ url }, "the port is open");
    await files.check();
    await core.stateFolder.look();
    core.stateFolder.start(lookMs);
    watchCache(core, stopping);
    await keepPartialsClean(core);
    loop.start();
    const wait = { generation: 0, timeoutMs: settings.startTimeoutMs, test: () => true };
    await loop.waitFor({ ...wait, signal: signal ?? stopping });
    isServing = true;
    const needsKey = (): boolean => !isLoopback(settings.host) || keys.areRequired();
    return { url, journal: core.journal, status, needsKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Each step is bounded, and one that fails does not prevent the next. Errors: that of the first failed step, after all of them. */
async function shutDown({ core, answers, files, stopping, cutOff }: Running, app: FastifyInstance): Promise<void> {
  const { engine, loop, executor, router, speech, settings } = core;
  const failures: unknown[] = [];
  const step = async (...works: readonly (() => unknown)[]): Promise<void> => {
    for (const outcome of await Promise.allSettled(works.map(async (work) => work())))
      if (outcome.status === "rejected") failures.push(outcome.reason);
  };

  stopping.abort();
  core.scheduler.shutDown();
  core.rpc.workers.stop();
  core.damage.close();
  core.closeHubMemory();
  // The engine's installation may be under way.
  const acting = step(files.close, loop.stop, executor.close, engine.settled).then(() =>
    step(core.hub.close, () => core.mirror?.client.close()),
  );
  const isOver = (): Promise<boolean> =>
    Promise.race([acting.then(() => true), delay(settings.stopGraceMs, false, { ref: false })]);
  // An action may hang on an engine, so it is not waited for longer than the answers are.
  await Promise.all([answers.settled(AbortSignal.timeout(settings.stopGraceMs)), isOver()]);
  cutOff.abort();
  await answers.settled(AbortSignal.timeout(flushMs));
  await step(() => app.close());
  await step(router.close, speech.close);
  if (!(await isOver())) {
    const names = executor.running().map(({ action }) => action.message);
    failures.push(new GatewayError("internal", `work under way did not end: ${names.join("; ") || "a pass"}`));
  }
  // An action may have started an engine meanwhile.
  await step(router.close, speech.close);
  await step(
    core.lastUsed.close,
    core.contexts.close,
    core.loads.close,
    core.memory.close,
    core.history.close,
    core.logs.flush,
  );
  await step(core.stateFolder.stop);
  await step(core.lock.release);
  if (failures.length > 0) throw failures[0];
}
