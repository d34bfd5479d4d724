// Starts a gateway and stops it, in order.
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import type { PullTimes } from "../commands/pull-patience.ts";
import { watchFileSource } from "../desired/file-source.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { endLeftovers } from "../engines/process/leftovers.ts";
import { isLoopback } from "../http/auth/guards.ts";
import { listen, requireFreePort, requireKeys } from "../http/server/listen.ts";
import { createOpenAnswers } from "../http/server/open-answers.ts";
import { keyFileName } from "../keys/key-file.ts";
import { type LicenseKeys, openLicenseKeys } from "../keys/license-keys.ts";
import { isDocumentFile } from "../observe/document-files.ts";
import type { Settings } from "../settings/settings.ts";
import { removeTemporaries } from "../state/atomic-file.ts";
import { lockState, requireUnlocked, type StateLock } from "../state/lock.ts";
import type { Journal } from "../status/journal.ts";
import type { StatusReport } from "../status/report.ts";
import { type Core, createCore } from "./core.ts";
import { writeFirstDocument } from "./first-start.ts";
import { unlessDiskRefuses } from "./kept.ts";
import { removeLeftoverPartials } from "./leftover-partials.ts";
import { openFilesProblem } from "./open-files.ts";
import { createServer } from "./server.ts";
import { shutDown } from "./shut-down.ts";
import { warnTo } from "./warn.ts";
import { watchCache } from "./watch-cache.ts";

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
  /** Gives the start up: whatever has been started ends. */
  readonly signal?: AbortSignal;
  /** For tests, which cannot wait as long as people do. */
  readonly pulls?: PullTimes;
}

/** Filesystems without events: how often gateway.yaml is looked at anyway. */
const filePollMs = 2_000;

/** How often the state folder is looked after, and whether the model cache is in its place. */
const stateLookMs = 2_000;

/**
 * Starts a gateway. Errors: `invalid_request` for settings that cannot work (port taken, state folder in use);
 * `shutting_down`, `cancelled` where the start was given up.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { settings, logger, signal = new AbortController().signal } = options;
  const keys = openLicenseKeys({
    path: join(settings.stateDir, keyFileName),
    single: settings.licenseKey,
    createCommand: settings.command("key", "create", "NAME"),
    now: Date.now,
    warn: warnTo(logger),
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
    const core = await createCore({
      settings,
      logger,
      lock,
      onInstallProgress: options.onInstallProgress ?? (() => undefined),
    });
    await unlessDiskRefuses(logger, () => writeFirstDocument(settings, core.store.hasAppliedFile(), logger));
    const tight = await openFilesProblem(settings.maxConnections);
    if (tight !== null) logger.warn(tight);
    return await run({ core, keys, settings, logger, signal, lock, pulls: options.pulls ?? {} });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function run(options: {
  readonly core: Core;
  readonly keys: LicenseKeys;
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly signal: AbortSignal;
  readonly lock: StateLock;
  readonly pulls: PullTimes;
}): Promise<Gateway> {
  const { core, keys, settings, logger, signal, lock } = options;
  const { events, loop, store } = core;
  const stopping = new AbortController();
  const cutOff = new AbortController();
  // Each request that waits, each answer in flight listens to one of them.
  setMaxListeners(0, stopping.signal, cutOff.signal);
  const answers = createOpenAnswers();
  let stoppingSince: number | null = null;
  stopping.signal.addEventListener("abort", () => {
    stoppingSince = Date.now();
  });
  const status = (): StatusReport => core.status(stoppingSince);
  const files = await watchFileSource({
    path: settings.configPath,
    store,
    presetAllow: settings.presetAllow,
    others: [core.presetPath],
    isOther: (changed) => isDocumentFile(settings.configPath, store.current().document, changed),
    onOther: () => events.emit({ type: "changed", what: "watched file" }),
    onStatus: (found) => events.emit({ type: "sourceChecked", status: found }),
    warn: warnTo(logger),
    pollMs: filePollMs,
  });
  const app = createServer({
    ...options,
    answers,
    readFile: files.refresh,
    status,
    stopping: stopping.signal,
    cutOff: cutOff.signal,
  });
  let stopped: Promise<void> | null = null;
  const stop = (): Promise<void> =>
    (stopped ??= shutDown({
      core,
      app,
      answers,
      files,
      stopGraceMs: settings.stopGraceMs,
      stopping,
      cutOff,
      unlock: lock.release,
    }));

  try {
    const url = await listen(app, settings);
    lock.announce(url);
    await files.check();
    await core.stateFolder.look();
    core.stateFolder.start(stateLookMs);
    watchCache(settings.cacheDir, loop, stopping.signal);
    await removeLeftoverPartials(settings.cacheDir, core, logger);
    events.on("documentChanged", () => void removeLeftoverPartials(settings.cacheDir, core, logger));
    loop.start();
    await loop.waitFor({ generation: 0, timeoutMs: settings.startTimeoutMs, signal, test: () => true });
    void core.engine.prepare(stopping.signal);
    const needsKey = (): boolean => !isLoopback(settings.host) || keys.areRequired();
    return { url, journal: core.journal, status, needsKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
