// The status, wired: conditions follow the passes and the file source; a report is assembled on request.
import { foldWorker } from "../core/worker-address.ts";
import type { SourceStatus } from "../desired/document/parse.ts";
import { unreadSource } from "../desired/file-source.ts";
import type { Executor } from "../execute/executor.ts";
import { sharesBody } from "../memory/limits.ts";
import type { ByDevice } from "../memory/need.ts";
import { cachedIn } from "../plan/find-model.ts";
import { workersByAddress } from "../plan/workers.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import { version } from "../settings/settings.ts";
import type { StateLock } from "../state/lock.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { gatewayFindings, toConditions } from "../status/conditions.ts";
import { type Condition, type Finding, notServing, type StatusInput } from "../status/finding.ts";
import { modelReady } from "../status/health.ts";
import { modelFindings } from "../status/model-findings.ts";
import { modelIds, type StatusReport, statusReport } from "../status/report.ts";
import { workerFindings } from "../status/worker-conditions.ts";
import type { Base } from "./events.ts";
import type { HubFits } from "./hub-memory.ts";
import type { Machine } from "./machine.ts";
import type { MemoryFacts } from "./memory.ts";
import type { Rpc } from "./rpc.ts";
import type { Scheduling } from "./scheduling.ts";
import type { State } from "./state.ts";

interface Parts extends Base, State, Machine, Scheduling {
  readonly lock: StateLock;
  readonly stateFolder: StateFolder;
  readonly rpc: Rpc;
  readonly memory: MemoryFacts;
  readonly hubFits: HubFits;
  readonly executor: Executor;
  readonly loop: Loop;
}

/** Returns the report; `stoppingSince` in ms, null while the gateway does not stop. */
export function createStatus(parts: Parts): (stoppingSince: number | null) => StatusReport {
  const { settings, events, lock, stateFolder, store, hub, router, engine, rpc, scheduler, speech, loop, memory } =
    parts;
  const startedAt = Date.now();
  let source: SourceStatus = unreadSource(settings.configPath);
  /** By subject: `gateway`, a model's id, `worker/ADDRESS`. */
  let conditions: ReadonlyMap<string, readonly Condition[]> = new Map();
  let models: ReturnType<typeof modelIds> = [];
  let passedAt: number | null = null;
  /** The conditions are older than the pass, or what else they are made of. */
  let isDue = false;

  function update({ desired, observed, plan, running }: Pass): void {
    const pinned = desired.document.models.flatMap((model) => {
      const upstreamId = model.pinned ? cachedIn(observed, model.id)?.upstreamId : undefined;
      const isLoaded = upstreamId !== undefined && router.instances.get(upstreamId);
      return isLoaded ? [{ id: model.id, takes: memory.models.taken(upstreamId) }] : [];
    });
    /** What other pinned models have: none of them leaves for this one. */
    const pinnedBeside = (own: string): ByDevice[] => pinned.flatMap(({ id, takes }) => (id === own ? [] : [takes]));
    const input: StatusInput = {
      desired: desired.document,
      observed,
      plan,
      source,
      running,
      backoff: loop.backoff(),
      hub: hub.reachability(),
      engineProblem: engine.problem(),
      state: stateFolder.report(),
      requests: {
        failing: scheduler.failing(),
        firstTokens: scheduler.firstTokens(),
      },
      fits: new Map(
        desired.document.models.flatMap(({ id }) => {
          const cached = cachedIn(observed, id);
          if (cached?.complete) return [[cached.upstreamId, memory.fits(cached.upstreamId, pinnedBeside(id))] as const];
          const fact = parts.hubFits.fits(id);
          return fact ? [[id, fact] as const] : [];
        }),
      ),
      command: settings.command,
    };
    models = modelIds(desired, plan.unmanaged);
    const ofGateway = gatewayFindings(input);
    const serving = notServing(ofGateway);
    const found: readonly (readonly [subject: string, findings: readonly Finding[]])[] = [
      ["gateway", ofGateway],
      ...models.map(({ id }) => {
        const own = modelFindings(id, input);
        return [id, [modelReady(id, own, serving, input), ...own]] as const;
      }),
      ...workersFound(input),
    ];
    const before = conditions;
    const now = new Date().toISOString();
    conditions = new Map(
      found.map(([subject, findings]) => {
        const earlier = before.get(subject) ?? [];
        return [subject, toConditions(findings, earlier, desired.generation, now)];
      }),
    );
    // Emitted last, as listeners read the report at once.
    for (const [subject, after] of conditions) {
      for (const condition of after) {
        const earlier = before.get(subject)?.find(({ type }) => type === condition.type);
        if (earlier?.status !== condition.status || earlier.reason !== condition.reason)
          events.emit("conditionChanged", subject, condition);
      }
    }
  }

  function workersFound({ desired, observed }: StatusInput): [subject: string, findings: readonly Finding[]][] {
    const seen = workersByAddress(observed.workers);
    return desired.rpc.workers.map((address) => {
      const worker = seen.get(foldWorker(address));
      const usedBy = rpc.workers.usedBy(worker?.endpoint ?? null);
      return [`worker/${address}`, workerFindings(worker, usedBy)];
    });
  }

  function refresh(): void {
    const pass = isDue ? loop.last() : null;
    isDue = false;
    if (!pass) return;
    try {
      update(pass);
    } catch (error) {
      parts.logger.error({ err: error }, "conditions could not be made");
    }
  }

  /** What an edit does next comes first: conditions took 0.8 ms of each of its passes. A report never shows old ones. */
  function refreshSoon(): void {
    if (!isDue) setImmediate(refresh);
    isDue = true;
  }

  events.on("passed", () => {
    passedAt = Date.now();
    refreshSoon();
  });
  events.on("sourceChecked", (status) => {
    source = status;
    refreshSoon();
  });
  events.on("memoryKnown", (left) => {
    if (left === 0) refreshSoon();
  });

  return (stoppingSince) => {
    refresh();
    return statusReport({
      version,
      id: lock.id,
      startedAt,
      stoppingSince,
      desired: store.current(),
      pass: loop.last(),
      passedAt,
      router: router.snapshot(),
      binary: engine.path(),
      speech: speech.report(),
      source,
      conditions: conditions.get("gateway") ?? [],
      models: models.map((model) => ({ ...model, conditions: conditions.get(model.id) ?? [] })),
      workers: rpc.statuses((address) => conditions.get(`worker/${address}`) ?? []),
      running: parts.executor.running(),
      memory: sharesBody(memory.models.shares()),
      ...parts.requests(),
    });
  };
}
