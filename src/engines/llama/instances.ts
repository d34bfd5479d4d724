// The router's loaded models as upstreams: the address of each, and its responses in flight.
// An instance ends when its standard input closes, so a crash of the router would cut every response in flight: during a
// response we hold that pipe open too (Linux), and close it after the last one.
import { close, constants, open } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { systemCode } from "../../core/errors.ts";
import { isReadyValue, type RouterModel } from "../../plan/observed.ts";
import { registeredCtxSize } from "../../plan/wanted-preset.ts";
import { endpointsOf } from "../../plan/workers.ts";

export interface Instance {
  readonly id: string;
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  /** Bearer key of this router and its models. */
  readonly key: string;
  /** The context size that its process was started with, in tokens; null: none was given. */
  readonly ctxSize: number | null;
  /** The context that the process reports; null if it does not. */
  readonly nCtx: number | null;
  /** Of its process, if known (Linux). */
  readonly pid: number | null;
  /** The RPC workers that it uses; if one hangs, the instance hangs. */
  readonly workers: readonly string[];
  /** Requests that its process computes at once. */
  readonly slots: number;
  /** Counts a response in flight; call the result when it has ended. */
  retain(): () => void;
}

interface Entry {
  readonly instance: Instance;
  readonly routerPid: number;
  users: number;
  /** No longer on the router's list: takes no new requests. */
  detached: boolean;
  /** The held end of its standard input. */
  pipe: number | null;
}

export interface Instances {
  /** Brings the table up to date with the router's list. */
  update(routerPid: number, key: string, models: readonly RouterModel[]): Promise<void>;
  /** The router is dead: instances in use live until their responses have ended. */
  detachAll(): void;
  get(id: string): Instance | null;
  list(): readonly Instance[];
  /** Responses in flight on instances that outlived their router. */
  detachedUsers(): number;
  /** Processes with responses in flight. */
  usedPids(): ReadonlySet<number>;
}

const openFile = promisify(open);
const closeFile = promisify(close);

/** `onGone`: an instance takes no more requests. */
export function createInstances(
  warn: (message: string, fields: object) => void,
  onGone: () => void = () => undefined,
): Instances {
  const current = new Map<string, Entry>();
  const detached = new Set<Entry>();
  /** Counts dead routers. */
  let epoch = 0;

  function letGo(entry: Entry): void {
    detached.delete(entry);
    if (entry.pipe === null) return;
    closeInput(entry.pipe);
    entry.pipe = null;
  }

  function closeInput(pipe: number): void {
    closeFile(pipe).catch((error: unknown) => warn("a model's input could not be closed", { error: String(error) }));
  }

  function detach(id: string): void {
    const entry = current.get(id);
    if (!entry) return;
    current.delete(id);
    entry.detached = true;
    if (entry.users === 0) letGo(entry);
    else detached.add(entry);
  }

  async function update(routerPid: number, key: string, models: readonly RouterModel[]): Promise<void> {
    const loaded = new Map(models.flatMap((model) => portOf(model) ?? []).map((entry) => [entry.model.id, entry]));
    for (const [id, { routerPid: pid, instance }] of current) {
      const port = loaded.get(id)?.port;
      if (pid === routerPid && port !== undefined && instance.origin === originOf(port)) continue;
      detach(id);
      onGone();
    }
    const added = [...loaded.values()].filter(({ model }) => !current.has(model.id));
    if (added.length === 0) return;
    const asked = epoch;
    const ports = added.map(({ port }) => port);
    const inputs = await openInputs(routerPid, ports);
    for (const { model, port } of added) {
      const input = inputs.get(port) ?? null;
      // The router died meanwhile: an entry made now would never be removed. And concurrent updates enter a process once:
      // callers compare instances by identity.
      if (epoch !== asked || current.get(model.id)?.instance.origin === originOf(port)) {
        if (input) closeInput(input.pipe);
        continue;
      }
      detach(model.id);
      current.set(model.id, createEntry({ model, port, key, routerPid, input }, letGo));
    }
  }

  return {
    update,
    detachAll: () => {
      epoch++;
      for (const id of current.keys()) detach(id);
    },
    get: (id) => current.get(id)?.instance ?? null,
    list: () => [...current.values()].map(({ instance }) => instance),
    usedPids: () =>
      new Set(
        [...current.values(), ...detached].flatMap(({ users, instance: { pid } }) =>
          users > 0 && pid !== null ? [pid] : [],
        ),
      ),
    detachedUsers: () => [...detached].reduce((sum, entry) => sum + entry.users, 0),
  };
}

function originOf(port: string): string {
  return `http://127.0.0.1:${port}`;
}

/** A loaded model with the port in its arguments. */
function portOf(model: RouterModel): { readonly model: RouterModel; readonly port: string } | null {
  const at = model.args.indexOf("--port");
  const port = at < 0 ? "0" : (model.args[at + 1] ?? "0");
  return port !== "0" && isReadyValue(model.value) ? { model, port } : null;
}

/** `onFree`: the last response in flight on a detached instance has ended. */
function createEntry(
  {
    model,
    port,
    key,
    routerPid,
    input,
  }: {
    readonly model: RouterModel;
    readonly port: string;
    readonly key: string;
    readonly routerPid: number;
    readonly input: Input | null;
  },
  onFree: (entry: Entry) => void,
): Entry {
  const instance: Instance = {
    id: model.id,
    origin: originOf(port),
    key,
    ctxSize: registeredCtxSize(model),
    nCtx: model.nCtx,
    pid: input?.pid ?? null,
    workers: endpointsOf(model),
    slots: slotsOf(model),
    retain: () => {
      entry.users++;
      let open = true;
      return () => {
        if (!open) return;
        open = false;
        entry.users--;
        if (entry.detached && entry.users === 0) onFree(entry);
      };
    },
  };
  const entry: Entry = { instance, routerPid, users: 0, detached: false, pipe: input?.pipe ?? null };
  return entry;
}

/** Parallel slots of the engine by default. */
const usualSlots = 4;

function slotsOf({ args }: RouterModel): number {
  const given = args.includes("--parallel") ? Number(args[args.indexOf("--parallel") + 1]) : 0;
  return given > 0 ? given : usualSlots;
}

interface Input {
  readonly pid: number;
  readonly pipe: number;
}

/** Write ends of the standard inputs of the router's children, by the port in their arguments. */
async function openInputs(routerPid: number, ports: readonly string[]): Promise<Map<string, Input>> {
  const inputs = new Map<string, Input>();
  if (process.platform !== "linux") return inputs;
  for (const pid of await childrenOf(routerPid)) {
    try {
      const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
      const port = args[args.indexOf("--port") + 1] ?? "";
      if (!ports.includes(port)) continue;
      const pipe = await openFile(`/proc/${pid}/fd/0`, constants.O_WRONLY | constants.O_NONBLOCK);
      inputs.set(port, { pid: Number(pid), pipe });
    } catch (error) {
      // It ended meanwhile, or its input is not a pipe: nothing to hold.
      if (systemCode(error) === undefined) throw error;
    }
  }
  return inputs;
}

async function childrenOf(pid: number): Promise<string[]> {
  try {
    const threads = await readdir(`/proc/${pid}/task`);
    const lists = await Promise.all(
      threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => "")),
    );
    return lists.flatMap((list) => list.split(" ")).filter((child) => child !== "");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(systemCode(error) ?? "")) return [];
    throw error;
  }
}
