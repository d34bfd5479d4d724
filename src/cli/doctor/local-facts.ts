// What this machine is like, as far as a gateway needs to know. Asks the hub one or two things, and changes nothing.
import { constants } from "node:fs";
import { access, lstat, readdir, readFile, realpath } from "node:fs/promises";
import { freemem } from "node:os";
import { dirname, join } from "node:path";
import { readFreeBytes } from "../../cache/download/disk-space.ts";
import type { StatusBody } from "../../client/index.ts";
import { reasonOf, toGatewayError } from "../../core/errors.ts";
import { locateEngine } from "../../engines/install/locate.ts";
import { describeEngine } from "../../engines/llama/describe.ts";
import { tryPort } from "../../engines/process/free-port.ts";
import { machineMemory } from "../../engines/process/memory.ts";
import { openFiles } from "../../engines/process/open-files.ts";
import { isLoopback } from "../../http/auth/guards.ts";
import { keyFileName, listKeys } from "../../keys/key-file.ts";
import { type Settings, version } from "../../settings/settings.ts";
import { home } from "../../settings/shared.ts";
import { readBytesIfPresent } from "../../state/atomic-file.ts";
import { lockHolder } from "../../state/lock.ts";
import type { FolderFacts, LocalFacts } from "./local-checks.ts";
import { mountOf } from "./mounts.ts";
import type { UnitFile } from "./unit-file.ts";

interface Known extends Pick<LocalFacts, "largest" | "isFirst"> {
  /** The whole status of the running gateway. */
  readonly status: StatusBody | null;
}

export async function localFacts(settings: Settings, { largest, isFirst, status }: Known): Promise<LocalFacts> {
  const { stateDir, cacheDir, environment, command } = settings;
  const mounts = await readFile("/proc/self/mounts", "utf8").catch(() => "");
  const owner = await lockHolder(stateDir);
  const [engine, gpus, cache, state, document, hub, units, available, files, network] = await Promise.all([
    // It may have been started with another PATH than this command.
    engineFacts(settings, status?.router.binary ?? null),
    gpuFiles(),
    folderFacts(cacheDir, mounts),
    folderFacts(stateDir, mounts),
    documentFacts(settings, mounts, status?.source),
    // What it needs is loaded while the engine runs.
    import("./hub-facts.ts").then(({ askHub }) => askHub(settings)),
    unitFiles(home(environment)),
    availableMemory(),
    openFiles(settings.maxConnections, owner?.pid ?? "self"),
    networkFacts(settings, owner?.url ?? null),
  ]);
  return {
    version,
    node: process.versions.node,
    isFirst,
    engine,
    gpus,
    memory: { total: machineMemory(), available },
    largest,
    openFiles: files,
    cache,
    state,
    document,
    hub,
    network,
    units,
    stopGraceMs: settings.stopGraceMs,
    commands: {
      install: command("engine", "install", "llama"),
      createKey: command("key", "create", "NAME"),
      serve: command("serve"),
    },
  };
}

async function engineFacts(
  { llamaServer, stateDir, environment, installEngine }: Settings,
  binary: string | null,
): Promise<LocalFacts["engine"]> {
  const none = { path: null, problem: null, version: null, devices: [], isInstalledAtStart: installEngine };
  const where = {
    explicit: llamaServer,
    pathVariable: environment["PATH"] ?? "",
    enginesDir: join(stateDir, "engines"),
  };
  let path: string | null = null;
  try {
    path = binary ?? (await locateEngine("llama-server", where));
    if (path === null) return none;
    return { ...none, path, ...(await describeEngine(path, environment)) };
  } catch (error) {
    return { ...none, path, problem: toGatewayError(error).message };
  }
}

async function gpuFiles(): Promise<string[]> {
  if (process.platform === "darwin" && process.arch === "arm64") return ["Apple's GPU"];
  const [devices, renderers] = await Promise.all(["/dev", "/dev/dri"].map((folder) => readdir(folder).catch(() => [])));
  return [
    ...(devices ?? []).filter((name) => /^(?:nvidia\d+|kfd)$/.test(name)).map((name) => `/dev/${name}`),
    ...(renderers ?? []).filter((name) => name.startsWith("renderD")).map((name) => `/dev/dri/${name}`),
  ];
}

async function availableMemory(): Promise<number> {
  const text = await readFile("/proc/meminfo", "utf8").catch(() => "");
  const kilobytes = /^MemAvailable:\s*(\d+)/m.exec(text)?.[1];
  return Math.min(machineMemory(), kilobytes === undefined ? freemem() : 1024 * Number(kilobytes));
}

async function folderFacts(path: string, mounts: string): Promise<FolderFacts> {
  const nearest = await nearestFolder(path);
  const problem = await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK).then(() => null, reasonOf);
  const free = await readFreeBytes(nearest);
  return {
    path,
    exists: nearest === path,
    problem: problem === null || nearest === path ? problem : `${nearest}: ${problem}`,
    freeBytes: free.state === "known" ? free.value : null,
    fileSystem: mountOf(await realpath(nearest).catch(() => nearest), mounts)?.kind ?? null,
  };
}

async function nearestFolder(path: string): Promise<string> {
  const isThere = await access(path).then(
    () => true,
    (error: unknown) => reasonOf(error) !== "ENOENT",
  );
  return isThere || dirname(path) === path ? path : nearestFolder(dirname(path));
}

async function documentFacts(
  { configPath, presetAllow }: Settings,
  mounts: string,
  source: StatusBody["source"] | undefined,
): Promise<LocalFacts["document"]> {
  const isConfigMap = await lstat(join(dirname(configPath), "..data")).then(
    () => true,
    () => false,
  );
  const facts = { path: configPath, isMount: mountOf(configPath, mounts)?.place === configPath, isConfigMap };
  try {
    const bytes = await readBytesIfPresent(configPath);
    if (bytes === null) return { ...facts, exists: false, problem: null };
    if (source?.valid && source.path === configPath) return { ...facts, exists: true, problem: null };
    const { parseBytes } = await import("../../desired/document/parse.ts");
    const parsed = parseBytes(bytes, presetAllow);
    const [first] = parsed.ok ? [] : parsed.problems;
    return {
      ...facts,
      exists: true,
      problem: first ? `${configPath}:${first.line}:${first.column}: ${first.message}` : null,
    };
  } catch (error) {
    return { ...facts, exists: true, problem: `${configPath} cannot be read (${reasonOf(error)})` };
  }
}

async function networkFacts(settings: Settings, url: string | null): Promise<LocalFacts["network"]> {
  const host = url === null ? settings.host : new URL(url).hostname;
  const listed = listKeys(join(settings.stateDir, keyFileName)).length;
  return {
    host,
    port: settings.port,
    isLoopback: isLoopback(host),
    keys: listed + (settings.licenseKey === undefined ? 0 : 1),
    url,
    portProblem:
      url === null ? await tryPort(host.replace(/^\[|\]$/g, ""), settings.port).then(() => null, reasonOf) : null,
  };
}

async function unitFiles(homeDir: string): Promise<UnitFile[]> {
  const folders = [
    "/etc/systemd/system",
    join(homeDir, ".config/systemd/user"),
    "/run/systemd/system",
    "/usr/lib/systemd/system",
  ];
  const found = folders.map(async (folder) => {
    const names = await readdir(folder).catch(() => []);
    const paths = names.filter((name) => /^model-gateway.*\.service$/.test(name)).map((name) => join(folder, name));
    return Promise.all(paths.map(async (path) => ({ path, text: await readFile(path, "utf8").catch(() => "") })));
  });
  return (await Promise.all(found)).flat();
}
