// What is wrong with this machine, from facts about it. Pure.
import { bytesText } from "../text.ts";
import { type Check, failed, ok, unknown, warning } from "./check.ts";
import { isContainerLayer, isNetwork } from "./mounts.ts";
import { type UnitFile, unitProblem } from "./unit-file.ts";

/** A folder, or the nearest one above it that exists. */
export interface FolderFacts {
  readonly path: string;
  readonly exists: boolean;
  /** Why it cannot be read and written; null: it can. */
  readonly problem: string | null;
  readonly freeBytes: number | null;
  /** Null: not known. */
  readonly fileSystem: string | null;
}

export interface HubFacts {
  readonly endpoint: string;
  readonly problem: string | null;
  readonly ms: number;
  /** How far this machine's clock is ahead of the hub's; null: not known. */
  readonly aheadMs: number | null;
  /** `account` and `role` as the hub has them. */
  readonly token:
    | { readonly state: "none" }
    | { readonly state: "refused" }
    | { readonly state: "unknown" }
    | { readonly state: "accepted"; readonly account: string; readonly role: string };
}

export interface LocalFacts {
  readonly version: string;
  readonly node: string;
  /** `--pre`: before the first start, which installs the engine and writes the document. */
  readonly isFirst: boolean;
  readonly engine: {
    readonly path: string | null;
    readonly problem: string | null;
    readonly version: string | null;
    readonly devices: readonly string[];
    readonly isInstalledAtStart: boolean;
  };
  /** Device files of GPUs. */
  readonly gpus: readonly string[];
  readonly memory: { readonly total: number; readonly available: number };
  /** The largest model of the document that is here. */
  readonly largest: { readonly id: string; readonly bytes: number } | null;
  /** Null: no limit, or not known. */
  readonly openFiles: { readonly limit: number | null; readonly needed: number };
  readonly cache: FolderFacts;
  readonly state: FolderFacts;
  readonly document: {
    readonly path: string;
    readonly exists: boolean;
    readonly problem: string | null;
    /** The file itself is a mount; its folder is a ConfigMap's. */
    readonly isMount: boolean;
    readonly isConfigMap: boolean;
  };
  readonly hub: HubFacts;
  readonly network: {
    readonly host: string;
    readonly port: number;
    readonly isLoopback: boolean;
    readonly keys: number;
    /** Of the running gateway. */
    readonly url: string | null;
    readonly portProblem: string | null;
  };
  readonly units: readonly UnitFile[];
  readonly stopGraceMs: number;
  /** What a person types. */
  readonly commands: { readonly install: string; readonly createKey: string; readonly serve: string };
}

export function localChecks(facts: LocalFacts): Check[] {
  return [
    ok("versions", `Model Gateway ${facts.version}, Node ${facts.node}`),
    unitFile(facts),
    ...engineChecks(facts),
    memory(facts),
    clock(facts.hub),
    openFiles(facts.openFiles),
    folder("cache-access", facts.cache),
    disk(facts.cache),
    fileSystem(facts.cache),
    folder("state-access", facts.state),
    document(facts),
    documentMount(facts.document),
    hub(facts.hub),
    hubToken(facts.hub),
    port(facts),
    exposure(facts),
  ];
}

function unitFile({ units, stopGraceMs }: LocalFacts): Check {
  const [unit] = units;
  if (!unit) return ok("unit-file", "no systemd unit of this name");
  const problem = unitProblem(unit, stopGraceMs);
  return problem === null
    ? ok("unit-file", unit.path)
    : warning("unit-file", `${unit.path}: ${problem}`, "Correct the unit, then `systemctl daemon-reload`.");
}

function engineChecks({ engine, gpus, isFirst, commands }: LocalFacts): Check[] {
  const install = `Run \`${commands.install}\`, or name one with --llama-server.`;
  if (engine.path === null) {
    const why = engine.problem ?? "no llama-server in PATH or in the state folder";
    if (isFirst && engine.problem === null && engine.isInstalledAtStart)
      return [ok("engine-found", `${why}: the first start installs one`)];
    return [failed("engine-found", why, install)];
  }
  const found = ok("engine-found", engine.path);
  if (engine.version === null)
    return [found, failed("engine-runs", engine.problem ?? "it does not print its version", install)];
  const runs = ok("engine-runs", `llama-server ${engine.version}`);
  const devices = engine.devices.join(", ");
  if (devices !== "") return [found, runs, ok("gpu", `the engine uses ${devices}`)];
  if (gpus.length === 0) return [found, runs, ok("gpu", "no GPU is here; the engine uses the processor")];
  const cure = "Install a build of llama.cpp for this GPU (CUDA, ROCm or Vulkan), and name it with --llama-server.";
  return [found, runs, warning("gpu", `${gpus.join(", ")} is here, and the engine has no device for it`, cure)];
}

function memory({ memory: { total, available }, largest }: LocalFacts): Check {
  const evidence = `${bytesText(available)} of ${bytesText(total)} available`;
  return largest && largest.bytes > total
    ? warning(
        "memory",
        `${evidence}; ${largest.id} has ${bytesText(largest.bytes)}`,
        "Choose a smaller quantization of it.",
      )
    : ok("memory", evidence);
}

const mostAheadMs = 60_000;

function clock({ aheadMs }: HubFacts): Check {
  if (aheadMs === null) return unknown("clock", "the hub, whose time it is compared with, did not answer");
  const seconds = Math.round(aheadMs / 1000);
  return Math.abs(aheadMs) > mostAheadMs
    ? warning(
        "clock",
        `${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} the hub's`,
        "Set the clock, for instance by NTP.",
      )
    : ok("clock", "within a minute of the hub's");
}

function openFiles({ limit, needed }: LocalFacts["openFiles"]): Check {
  if (limit === null) return ok("open-files", "no limit is known");
  const evidence = `${limit} may be open, --max-connections may need ${needed}`;
  return limit >= needed
    ? ok("open-files", evidence)
    : warning("open-files", evidence, "Raise the limit (`ulimit -n`, LimitNOFILE), or lower --max-connections.");
}

function folder(id: "cache-access" | "state-access", { path, exists, problem }: FolderFacts): Check {
  if (problem !== null)
    return failed(id, `${path}: ${problem}`, "Make the folder readable and writable for this user.");
  return ok(id, exists ? path : `${path} is not there yet, and can be made`);
}

/** Below it the next pull is likely to fail. */
const leastBytes = 512 * 1024 * 1024;
const fewBytes = 5_000_000_000;

function disk({ freeBytes }: FolderFacts): Check {
  if (freeBytes === null) return unknown("cache-disk", "the free space is not known");
  const evidence = `${bytesText(freeBytes)} free`;
  const cure = "Free disk space: `models` and `gc` show what models take.";
  if (freeBytes < leastBytes) return failed("cache-disk", evidence, cure);
  return freeBytes < fewBytes ? warning("cache-disk", evidence, cure) : ok("cache-disk", evidence);
}

function fileSystem({ fileSystem }: FolderFacts): Check {
  if (fileSystem === null) return unknown("cache-file-system", "its kind is not known on this system");
  if (isNetwork(fileSystem))
    return warning(
      "cache-file-system",
      `${fileSystem}, over a network`,
      "Put the cache on a local disk (HF_HUB_CACHE): models are mapped into memory from it.",
    );
  return isContainerLayer(fileSystem)
    ? warning(
        "cache-file-system",
        `${fileSystem}, the container's own layer`,
        "Mount a volume there: with the container its models are gone.",
      )
    : ok("cache-file-system", fileSystem);
}

function document({ document: { path, exists, problem }, isFirst, commands }: LocalFacts): Check {
  if (problem !== null) return failed("document", problem, "Correct it; `validate` shows every problem.");
  if (exists) return ok("document", `${path} is valid`);
  return isFirst
    ? ok("document", `${path}: the first start writes it`)
    : warning(
        "document",
        `${path} is not there`,
        `Put it back; \`${commands.serve}\` writes a first one where none was applied yet.`,
      );
}

function documentMount({ isMount, isConfigMap }: LocalFacts["document"]): Check {
  if (isMount)
    return warning(
      "document-mount",
      "gateway.yaml is a mount of its own: a new version of it never arrives",
      "Mount its folder instead (no subPath).",
    );
  return ok("document-mount", isConfigMap ? "in a ConfigMap's folder" : "no mount of its own");
}

function hub({ endpoint, problem, ms }: HubFacts): Check {
  return problem === null
    ? ok("hub", `${endpoint} answers in ${Math.round(ms)} ms`)
    : warning(
        "hub",
        problem,
        "Models that are here are served without it. Check the network, HTTPS_PROXY and HF_ENDPOINT.",
      );
}

function hubToken({ token }: HubFacts): Check {
  if (token.state === "none") return ok("hub-token", "none: public repositories only");
  if (token.state === "unknown") return unknown("hub-token", "set; the hub did not say what it may");
  if (token.state === "refused")
    return failed(
      "hub-token",
      "the hub refuses it",
      "Make a new one on the hub, with the right to read, and set HF_TOKEN.",
    );
  return ok("hub-token", `of ${token.account}, it may ${token.role}`);
}

function port({ network: { host, port: number, url, portProblem } }: LocalFacts): Check {
  if (url !== null) return ok("port", `the gateway listens on ${url}`);
  return portProblem === null
    ? ok("port", `${host}:${number} is free`)
    : failed(
        "port",
        `${host}:${number}: ${portProblem}`,
        "End the program that has it, or choose another with --port.",
      );
}

function exposure({ network: { host, isLoopback, keys }, commands }: LocalFacts): Check {
  const has = keys === 0 ? "no license key" : `${keys} license ${keys === 1 ? "key" : "keys"}`;
  if (isLoopback) return ok("exposure", `${host}: this machine only; ${has}`);
  return keys === 0
    ? failed(
        "exposure",
        `${host} is open to other machines, and there is ${has}`,
        `Run \`${commands.createKey}\`, or use 127.0.0.1.`,
      )
    : ok("exposure", `${host}: open to other machines; ${has}`);
}
