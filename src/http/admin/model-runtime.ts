// What a status report shows of each model's files and process.
import type { Catalog } from "../../catalog/catalog.ts";
import type { Instances } from "../../engines/llama/instances.ts";
import { memoryOf } from "../../engines/process/memory.ts";
import type { StatusReport } from "../../status/report.ts";

export interface RuntimeDeps {
  readonly catalog: Pick<Catalog, "find" | "view">;
  readonly router: { readonly instances: Pick<Instances, "get"> };
}

type Runtime = StatusReport["models"][number]["runtime"];

export async function withRuntimes(report: StatusReport, deps: RuntimeDeps): Promise<StatusReport> {
  const models = report.models.map(async (model) => ({ ...model, runtime: await runtimeOf(model.id, deps) }));
  return { ...report, models: await Promise.all(models) };
}

async function runtimeOf(name: string, { catalog, router }: RuntimeDeps): Promise<NonNullable<Runtime> | null> {
  const found = catalog.find(name);
  const view = found && catalog.view(found.id);
  if (!view) return null;
  const { model, contextLength, status } = view;
  const pid = router.instances.get(model.upstreamId)?.pid ?? null;
  return {
    bytes: model.bytes,
    contextLength,
    state: status,
    pid,
    memoryBytes: pid === null ? null : await memoryOf(pid),
  };
}
