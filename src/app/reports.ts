// The status, wired: conditions follow the passes and the file source; a report is put together when it is asked for.
import type { SourceStatus } from "../desired/document/parse.ts";
import { unreadSource } from "../desired/file-source.ts";
import type { EngineSource } from "../engines/llama/engine-source.ts";
import type { Router } from "../engines/llama/router.ts";
import type { Executor } from "../execute/executor.ts";
import type { HubClient } from "../hub/client.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import { type Settings, version } from "../settings/settings.ts";
import type { StateLock } from "../state/lock.ts";
import type { StatusInput } from "../status/conditions.ts";
import { type StatusReport, statusReport } from "../status/report.ts";
import { createStatusTracker } from "./condition-tracker.ts";
import type { Events } from "./events.ts";
import type { Kept } from "./kept.ts";
import type { Requests } from "./requests.ts";
import type { Rpc } from "./rpc.ts";
import type { Speech } from "./speech.ts";

/** `stoppingSince`: ms; null where it does not stop. */
export type ReportStatus = (stoppingSince: number | null) => StatusReport;

export function createReports(options: {
  readonly settings: Settings;
  readonly events: Events;
  readonly lock: Pick<StateLock, "id">;
  readonly kept: Kept;
  readonly hub: HubClient;
  readonly router: Router;
  readonly engine: EngineSource;
  readonly requests: Requests;
  readonly rpc: Rpc;
  readonly speech: Speech;
  readonly executor: Executor;
  readonly loop: Loop;
}): ReportStatus {
  const { settings, events, kept, hub, router, engine, requests, rpc, speech, executor, loop } = options;
  const startedAt = Date.now();
  let source: SourceStatus = unreadSource(settings.configPath);
  const tracker = createStatusTracker({
    now: Date.now,
    usedBy: rpc.workers.usedBy,
    onChange: (subject, condition) => events.emit({ type: "conditionChanged", subject, condition }),
  });

  function statusInput({ desired, observed, plan, running }: Pass): StatusInput {
    return {
      desired: desired.document,
      observed,
      plan,
      source,
      running: running.map(({ action: { kind, key, message }, startedAt }) => ({ kind, key, message, startedAt })),
      backoff: loop.backoff(),
      hub: hub.reachability(),
      engineProblem: engine.problem(),
      state: kept.stateFolder.report(),
      requests: requests.met(),
      command: settings.command,
    };
  }

  events.on("passed", ({ pass }) => tracker.update(pass, statusInput(pass)));
  events.on("sourceChecked", ({ status }) => {
    source = status;
    // A report shows the newest source: the conditions beside it must not be of the one before.
    const pass = loop.last();
    if (pass) tracker.update(pass, statusInput(pass));
  });

  return (stoppingSince) =>
    statusReport({
      version,
      id: options.lock.id,
      startedAt,
      stoppingSince,
      desired: kept.store.current(),
      pass: loop.last(),
      router: router.snapshot(),
      binary: engine.path(),
      speech: speech.report(),
      source,
      conditions: tracker.conditions(),
      models: tracker.models(),
      workers: rpc.statuses(tracker.workers()),
      running: executor.running(),
      ...requests.underWay(),
    });
}
