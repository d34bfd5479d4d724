// The router's loaded models as upstreams: the address of each, and its responses in flight.
// An instance ends when its standard input closes, so a crash of the router would cut every response in flight: during a
// response we hold that pipe open too (Linux), and close it after the last one.
import { close, constants, openSync, readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { systemCode } from "../../core/errors.ts";
import { isReadyValue, optionOf, type RouterModel } from "../../plan/observed.ts";
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
  /** What it was started for: it refuses the others. */
  readonly task: "completion" | "embedding" | "rerank";
  /** Counts a response in flight; call the result when it has ended. */
  retain(): () => void;
}

export type Instances = ReturnType<typeof createInstances>;

const closeFile = promisify(close);

interface Entry extends Instance {
  readonly routerPid: number;
  users: number;
  /** No longer on the router's list: takes no new requests. */
  isDetached: boolean;
  /** The held end of its standard input. */
  pipe: number | null;
}

/** `onFree`: the last response in flight on a detached instance has ended. */
function createEntry(
  model: RouterModel,
  router: { readonly pid: number; readonly key: string },
  input: Input | null,
  onFree: (entry: Entry) => void,
): Entry {
  const entry: Entry = {
    id: model.id,
    origin: originOf(model) ?? "",
    key: router.key,
    ctxSize: registeredCtxSize(model),
    nCtx: model.nCtx,
    pid: input?.pid ?? null,
    workers: endpointsOf(model),
    slots: slotsOf(model),
    task: taskOf(model),
    routerPid: router.pid,
    users: 0,
    isDetached: false,
    pipe: input?.pipe ?? null,
    retain: () => {
      entry.users++;
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        entry.users--;
        if (entry.isDetached && entry.users === 0) onFree(entry);
      };
    },
  };
  return entry;
}

/** `onGone`: an instance takes no more requests. */
export function createInstances(warn: (message: string, fields: object) => void, onGone: () => void = () => undefined) {
  const current = new Map<string, Entry>();
  const detached = new Set<Entry>();
  /** Of the router that runs. */
  let routerPid: number | null = null;

  function free(entry: Entry): void {
    detached.delete(entry);
    const { pipe } = entry;
    entry.pipe = null;
    if (pipe === null) return;
    closeFile(pipe).catch((error: unknown) => warn("a model's input could not be closed", { error: String(error) }));
  }

  function detach(entry: Entry): void {
    current.delete(entry.id);
    entry.isDetached = true;
    if (entry.users === 0) free(entry);
    else detached.add(entry);
  }

  return {
    /** Brings the table up to date with the router's list. */
    update: (pid: number, key: string, models: readonly RouterModel[]): void => {
      routerPid = pid;
      const loaded = new Map(models.flatMap((model) => (originOf(model) === null ? [] : [[model.id, model]])));
      for (const entry of current.values()) {
        const model = loaded.get(entry.id);
        if (entry.routerPid === pid && model && originOf(model) === entry.origin) continue;
        detach(entry);
        onGone();
      }
      const added = [...loaded.values()].filter(({ id }) => !current.has(id));
      const inputs = added.length === 0 ? noInputs : openInputs(pid, added.map(portOf));
      for (const model of added)
        current.set(model.id, createEntry(model, { pid, key }, inputs.get(portOf(model)) ?? null, free));
    },
    /** The router is dead: instances in use live until their responses have ended. */
    detachAll: (): void => {
      routerPid = null;
      for (const entry of current.values()) detach(entry);
    },
    get: (id: string): Instance | null => current.get(id) ?? null,
    list: (): readonly Instance[] => [...current.values()],
    /** Of their processes, and of those that are being loaded or ended (Linux). */
    pids: (): readonly number[] => {
      const children = routerPid === null ? [] : childrenOf(routerPid).map(Number);
      return [...new Set([...[...current.values()].flatMap(({ pid }) => pid ?? []), ...children])];
    },
    /** Processes with responses in flight. */
    usedPids: (): ReadonlySet<number> =>
      new Set([...current.values(), ...detached].flatMap(({ users, pid }) => (users > 0 && pid !== null ? [pid] : []))),
    /** Responses in flight on instances that outlived their router. */
    detachedUsers: () => [...detached].reduce((sum, { users }) => sum + users, 0),
  };
}

/** 0 for none. */
function portOf(model: RouterModel): string {
  return optionOf(model, "--port") ?? "0";
}

/** Null where the model does not answer. */
function originOf(model: RouterModel): string | null {
  const port = portOf(model);
  return port !== "0" && isReadyValue(model.value) ? `http://127.0.0.1:${port}` : null;
}

/** Parallel slots of the engine by default. */
const usualSlots = 4;

function slotsOf(model: RouterModel): number {
  const given = Number(optionOf(model, "--parallel") ?? 0);
  return given > 0 ? given : usualSlots;
}

function taskOf({ args }: RouterModel): Instance["task"] {
  if (args.includes("--reranking") || args.includes("--rerank")) return "rerank";
  return args.includes("--embeddings") || args.includes("--embedding") ? "embedding" : "completion";
}

interface Input {
  readonly pid: number;
  readonly pipe: number;
}

const noInputs: ReadonlyMap<string, Input> = new Map();

/**
 * Write ends of the standard inputs of the router's children, by the port in their arguments. Synchronous: `/proc` waits for no disk, and through the
 * pool of threads, beside an engine that starts, the first answer of a load came 8 ms later.
 */
function openInputs(routerPid: number, ports: readonly string[]): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  if (process.platform !== "linux") return inputs;
  for (const pid of childrenOf(routerPid)) {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const port = args[args.indexOf("--port") + 1] ?? "";
      if (!ports.includes(port)) continue;
      const pipe = openSync(`/proc/${pid}/fd/0`, constants.O_WRONLY | constants.O_NONBLOCK);
      inputs.set(port, { pid: Number(pid), pipe });
    } catch (error) {
      // It ended meanwhile, or its input is not a pipe: nothing to hold.
      if (systemCode(error) === undefined) throw error;
    }
  }
  return inputs;
}

function childrenOf(pid: number): string[] {
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`), []);
  const lists = threads.map((thread) =>
    unlessGone(() => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"), ""),
  );
  return lists.flatMap((list) => list.split(" ")).filter((child) => child !== "");
}

function unlessGone<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(systemCode(error) ?? "")) return otherwise;
    throw error;
  }
}
