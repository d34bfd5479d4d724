// What doctor makes of the facts about a machine and a gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Check, checkLines, checkTable } from "../../../src/cli/doctor/check.ts";
import { gatewayChecks, samplesIn } from "../../../src/cli/doctor/gateway-checks.ts";
import { type LocalFacts, localChecks } from "../../../src/cli/doctor/local-checks.ts";
import { mountOf } from "../../../src/cli/doctor/mounts.ts";
import { unitProblem } from "../../../src/cli/doctor/unit-file.ts";
import type { StatusBody } from "../../../src/client/index.ts";
import { readProjectFile } from "../../support/project-files.ts";

const folder = { path: "/cache", exists: true, problem: null, freeBytes: 1e12, fileSystem: "ext4" };
const good: LocalFacts = {
  version: "1.0.0",
  node: "22.0.0",
  isFirst: false,
  engine: { path: "/bin/llama-server", problem: null, version: "9000", devices: [], isInstalledAtStart: true },
  gpus: [],
  memory: { total: 16e9, available: 8e9 },
  largest: { id: "acme/a:Q8_0", bytes: 4e9 },
  openFiles: { limit: 8192, needed: 4352 },
  cache: folder,
  state: { ...folder, path: "/state" },
  document: { path: "/state/gateway.yaml", exists: true, problem: null, isMount: false, isConfigMap: false },
  hub: { endpoint: "https://hub.example", problem: null, ms: 80, aheadMs: 400, token: { state: "none" } },
  network: { host: "127.0.0.1", port: 8484, isLoopback: true, keys: 0, url: null, portProblem: null },
  units: [],
  stopGraceMs: 10_000,
  commands: { install: "engine install", createKey: "key create NAME", serve: "serve" },
};

const wrongIn = (checks: readonly Check[]): string[] =>
  checks.filter(({ result }) => result !== "ok").map(({ id, result }) => `${id} ${result}`);

test("a good machine: nothing is wrong", () => assert.deepEqual(wrongIn(localChecks(good)), []));

for (const [what, facts, expected] of [
  ["no engine", { engine: { ...good.engine, path: null } }, "engine-found failed"],
  [
    "an engine that does not run",
    { engine: { ...good.engine, version: null, problem: "SIGILL" } },
    "engine-runs failed",
  ],
  ["a GPU that the engine does not see", { gpus: ["/dev/nvidia0"] }, "gpu warning"],
  ["a model that is too large", { largest: { id: "a", bytes: 17e9 } }, "memory warning"],
  ["a wrong clock", { hub: { ...good.hub, aheadMs: -90_000 } }, "clock warning"],
  ["few files", { openFiles: { limit: 1024, needed: 4352 } }, "open-files warning"],
  ["a cache that cannot be written", { cache: { ...folder, problem: "EACCES" } }, "cache-access failed"],
  ["a nearly full disk", { cache: { ...folder, freeBytes: 1e9 } }, "cache-disk warning"],
  ["a full disk", { cache: { ...folder, freeBytes: 1e6 } }, "cache-disk failed"],
  ["a cache over a network", { cache: { ...folder, fileSystem: "nfs4" } }, "cache-file-system warning"],
  ["a cache in a container's layer", { cache: { ...folder, fileSystem: "overlay" } }, "cache-file-system warning"],
  ["no Linux", { cache: { ...folder, fileSystem: null } }, "cache-file-system unknown"],
  ["a broken document", { document: { ...good.document, problem: "1:1: no" } }, "document failed"],
  ["a document that is gone", { document: { ...good.document, exists: false } }, "document warning"],
  ["a file that is a mount", { document: { ...good.document, isMount: true } }, "document-mount warning"],
  ["a refused token", { hub: { ...good.hub, token: { state: "refused" } } }, "hub-token failed"],
  ["a token of which nothing is known", { hub: { ...good.hub, token: { state: "unknown" } } }, "hub-token unknown"],
  ["a taken port", { network: { ...good.network, portProblem: "EADDRINUSE" } }, "port failed"],
  [
    "open to all without a key",
    { network: { ...good.network, host: "0.0.0.0", isLoopback: false } },
    "exposure failed",
  ],
  ["a unit that ends engines first", { units: [{ path: "/u", text: "[Service]\n" }] }, "unit-file warning"],
] as const)
  test(`${what}: ${expected}, with a remedy`, () => {
    const checks = localChecks({ ...good, ...facts });
    assert.deepEqual(wrongIn(checks), [expected]);
    const found = checks.find(({ result }) => result !== "ok");
    assert.ok(found && (found.result === "unknown" || found.remedy !== null));
  });

test("before the first start, which installs the engine and writes the document, nothing is missing", () => {
  const facts = { ...good, isFirst: true, document: { ...good.document, exists: false } };
  assert.deepEqual(wrongIn(localChecks({ ...facts, engine: { ...good.engine, path: null } })), []);
  const named = { ...good.engine, path: null, problem: "LLAMA_SERVER is no file" };
  assert.deepEqual(wrongIn(localChecks({ ...facts, engine: named })), ["engine-found failed"]);
});

test("the hub away: its clock and its token cannot be checked", () => {
  const hub = { ...good.hub, problem: "cannot reach the hub", aheadMs: null, token: { state: "unknown" } } as const;
  assert.deepEqual(wrongIn(localChecks({ ...good, hub })), ["clock unknown", "hub warning", "hub-token unknown"]);
});

const now = Date.parse("2026-01-01T02:00:00Z");
const condition = { status: "True", observedGeneration: 1, lastTransitionTime: "", message: "" };
const status = {
  gateway: { version: "1.0.0", id: "x", ready: true, startedAt: "2026-01-01T00:00:00Z" },
  conditions: [{ ...condition, type: "Ready", reason: "Serving" }],
  models: [
    {
      id: "a",
      desired: true,
      conditions: [],
      runtime: { memoryBytes: 4e9, bytes: 1, contextLength: 1, state: "loaded", pid: 1 },
    },
  ],
  rpc: { mode: "single", workers: [] },
  waiting: [],
  planned: [],
} as unknown as StatusBody;
const lines = (...all: readonly string[]): string => all.map((line) => `model_gateway_${line}\n`).join("");
const facts = { status, metrics: "", ownVersion: "1.0.0", memory: 16e9, now };

test("metrics as text", () => {
  const text = `# HELP x y\n${lines('model_loads_total{model="a\\"b",outcome="failed"} 2', "ready 1")}`;
  assert.deepEqual(samplesIn(text), [
    { name: "model_loads_total", labels: { model: 'a\\"b', outcome: "failed" }, value: 2 },
    { name: "ready", labels: {}, value: 1 },
  ]);
});

const waiting = [{ model: "a", requests: 3, oldestMs: 31_000, for: "load" }] as const;
const stalled = [{ ...condition, type: "Stalled", reason: "HubNotFound", message: "not there" }];
const hubAway = [{ ...condition, type: "HubReachable", status: "False", reason: "HubUnreachable", message: "no" }];
const away = { address: "h:1", conditions: [{ ...condition, type: "Reachable", status: "False", reason: "Refused" }] };

for (const [what, changes, expected] of [
  ["a calm gateway", {}, []],
  ["another version", { ownVersion: "2.0.0" }, ["gateway-runs warning"]],
  ["a condition", { status: { ...status, conditions: stalled } }, ["conditions failed"]],
  ["the hub is away, which has a check of its own", { status: { ...status, conditions: hubAway } }, []],
  ["24 unloads in two hours", { metrics: lines('model_unloads_total{model="a"} 24') }, ["thrashing warning"]],
  ["11 unloads", { metrics: lines('model_unloads_total{model="a"} 11') }, []],
  ["a long wait", { status: { ...status, waiting } }, ["queue warning"]],
  [
    "slow requests",
    { metrics: lines('queue_wait_seconds_bucket{le="5",model="a"} 17', 'queue_wait_seconds_count{model="a"} 20') },
    ["cold-starts warning"],
  ],
  ["little memory", { memory: 4.2e9 }, ["loaded-memory warning"]],
  ["a failed load", { metrics: lines('model_loads_total{model="a",outcome="failed"} 1') }, ["failed-loads warning"]],
  [
    "a worker that is away and not used",
    { status: { ...status, rpc: { mode: "single", workers: [away] } } },
    ["workers warning"],
  ],
  ["a worker that is away", { status: { ...status, rpc: { mode: "rpc", workers: [away] } } }, ["workers failed"]],
  ["no license key", { metrics: null }, ["conditions unknown"]],
] as const)
  test(what, () => assert.deepEqual(wrongIn(gatewayChecks({ ...facts, ...changes } as typeof facts)), expected));

test("the innermost mount is a path's, the last of several", () => {
  const mounts =
    "/dev/a / ext4 rw 0 0\nsrv:/m /models nfs4 rw 0 0\n/dev/b /models/my\\040disk xfs rw 0 0\novl / overlay rw 0 0\n";
  for (const [path, kind] of [
    ["/models/my disk/hub", "xfs"],
    ["/models/my", "nfs4"],
    ["/modelsx", "overlay"],
  ] as const)
    assert.equal(mountOf(path, mounts)?.kind, kind);
  assert.equal(mountOf("/x", ""), null);
});

for (const [text, problem] of [
  ["KillMode=mixed\nTimeoutStopSec=30", null],
  ["KillMode = mixed", null],
  ["KillMode=mixed\nTimeoutStopSec=infinity", null],
  ["KillMode=mixed\nTimeoutStopSec=1min 30s", null],
  ["KillMode=mixed\nTimeoutStopSec=5", /TimeoutStopSec is 5 s/],
  ["KillMode=process\nTimeoutStopSec=30", /KillMode is process/],
] as const)
  test(`a unit with ${text.replace("\n", ", ")}`, () => {
    const found = unitProblem({ path: "/u", text }, 10_000);
    if (problem === null) assert.equal(found, null);
    else assert.match(found ?? "", problem);
  });

test("every check has a section of docs/doctor.md", () => {
  const headings = [...readProjectFile("docs/doctor.md").matchAll(/^### (\S+)$/gm)].map(([, id]) => id);
  assert.deepEqual(headings, Object.keys(checkTable));
});

test("as text: a remedy and a page below what is wrong, and a summary", () => {
  const checks = localChecks({ ...good, gpus: ["/dev/kfd"] });
  const shown = checkLines(checks, (_color, text) => text, undefined).join("\n");
  assert.match(
    shown,
    /\n\nengine\n------\n√ engine-found: .*\n√ .*\n‼ gpu: .*\n {4}Install .*\n {4}see docs\/doctor\.md#gpu\n\nmachine\n/,
  );
  assert.match(shown, /\n\nNo check of \d+ failed, 1 warn\.$/);
});
