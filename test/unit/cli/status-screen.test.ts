// The status on one screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { statusScreen } from "../../../src/cli/status-screen.ts";
import type { StatusBody } from "../../../src/client/index.ts";

const now = Date.parse("2027-03-01T12:00:00Z");
const ago = (seconds: number): string => new Date(now - 1000 * seconds).toISOString();

function condition(type: string, status: "True" | "False" | "Unknown", reason: string, message = "", age = 90) {
  return { type, status, reason, message, observedGeneration: 7, lastTransitionTime: ago(age) };
}

const estimated = { Host: 2 * 1024 ** 3 };
const needed = { bytes: estimated.Host, source: "estimated", estimated, measured: null } as const;
const runtime = {
  bytes: 1_500_000_000,
  contextLength: 4096,
  state: "loaded",
  pid: 12,
  memoryBytes: 2_100_000_000,
  need: needed,
};

const healthy: StatusBody = {
  gateway: { version: "1.2.3", id: "7f3a", startedAt: ago(7200), ready: true },
  router: { connected: true, phase: "ready", pid: 7, binary: "/bin/llama-server", crashes: 0 },
  rpc: { mode: "single", minWorkers: 0, warning: null, workers: [] },
  speech: { transcription: null, synthesis: null },
  sync: "Synced",
  health: "Healthy",
  generation: 7,
  documentHash: "cd".repeat(32),
  observedGeneration: 7,
  lastPass: ago(12),
  applied: { sha256: "ab".repeat(32), revision: "3f2a9c1", by: "http:PUT /api/desired", at: ago(300) },
  source: { path: "/srv/gateway.yaml", valid: true, reason: "Applied", message: "", problems: [] },
  conditions: [
    condition("Ready", "True", "Serving", "The router answers."),
    condition("Reconciling", "False", "Idle", "No action is running."),
  ],
  models: [
    {
      id: "acme/a:Q8_0",
      desired: true,
      conditions: [condition("Loaded", "True", "Loaded", "It is loaded.", 61)],
      runtime,
    },
  ],
  running: [],
  planned: [],
  inFlight: { "acme/a:Q8_0": 2 },
  waiting: [],
  removals: [],
  memory: { limits: estimated },
};

const plain = { now, paint: (_color: string, text: string) => text, columns: undefined };

test("a healthy gateway", () => {
  assert.deepEqual(statusScreen(healthy, plain), [
    "Model Gateway 1.2.3  Healthy  Synced  up 2h",
    "Document    generation 7, applied 5m ago by http:PUT /api/desired, sha256 abababababab, revision 3f2a9c1",
    "File        /srv/gateway.yaml",
    "Last pass   12s ago, router answers",
    "",
    "MODEL        SIZE     CONTEXT  STATE   SINCE  IN FLIGHT  WAITING  MEMORY",
    "acme/a:Q8_0  1.50 GB  4096     loaded  1m     2          0        2.0 GiB",
    "",
    "Conditions",
    "Ready        True   1m  Serving: The router answers.",
    "Reconciling  False  1m  Idle: No action is running.",
  ]);
});

test("what needs attention comes first, each matter once; what is as usual is none", () => {
  const lost = "acme/b is unknown. Correct its id.";
  const screen = statusScreen(
    {
      ...healthy,
      health: "Degraded",
      sync: "OutOfSync",
      observedGeneration: 6,
      applied: null,
      lastPass: null,
      conditions: [
        condition("Ready", "False", "Stalled", lost),
        condition("Synced", "False", "OutOfSync", "Actions are planned."),
        condition("Stalled", "True", "RepoNotFound", lost),
        condition("HubReachable", "False", "HubUnreachable", "The hub did not answer. Check the network."),
      ],
      models: [
        {
          id: "acme/b:Q8_0",
          desired: true,
          conditions: [condition("Present", "False", "RepoNotFound", lost), condition("Loaded", "False", "NotListed")],
          runtime: null,
        },
        {
          id: "acme/c:Q8_0",
          desired: true,
          conditions: [
            condition("Present", "True", "Cached"),
            condition("Loaded", "False", "LoadFailing", "Its last load failed: out of memory."),
          ],
          runtime: { ...runtime, state: "unloaded", pid: null, memoryBytes: null, need: needed },
        },
      ],
      planned: [
        {
          kind: "router.reload",
          key: "router",
          reason: "Changed",
          message: "reload the router",
          disrupts: [],
          held: "suspended",
          because: "the document has suspend: true",
          until: null,
        },
      ],
      inFlight: {},
      waiting: [{ model: "acme/c:Q8_0", requests: 3, oldestMs: 4200, for: "load" }],
    },
    plain,
  );
  assert.deepEqual(screen.slice(0, 14), [
    "Model Gateway 1.2.3  Degraded  OutOfSync  up 2h",
    "Document    generation 7 (6 observed)",
    "File        /srv/gateway.yaml",
    "Last pass   none yet, router answers",
    "",
    "Needs attention",
    `! acme/b:Q8_0 Present RepoNotFound (1m): ${lost}`,
    "! acme/c:Q8_0 Loaded LoadFailing (1m): Its last load failed: out of memory.",
    "! HubReachable HubUnreachable (1m): The hub did not answer. Check the network.",
    "! router.reload: reload the router: the document has suspend: true",
    "",
    "MODEL        SIZE     CONTEXT  STATE         SINCE  IN FLIGHT  WAITING         MEMORY",
    "acme/b:Q8_0  –        –        RepoNotFound  1m     0          0               –",
    "acme/c:Q8_0  1.50 GB  4096     LoadFailing   1m     0          3 for load, 4s  needs 2.0 GiB",
  ]);
});

test("it fits a terminal, and is painted line by line", () => {
  const columns = 40;
  const painted: string[] = [];
  const screen = statusScreen(healthy, {
    now,
    columns,
    paint: (color, text) => {
      painted.push(color);
      return text;
    },
  });
  for (const line of screen) assert.ok(line.length <= columns || line.startsWith("Model Gateway"), line);
  assert.ok(screen.includes("acme/a:Q8_0  1.50 GB  4096     loaded  …"));
  assert.deepEqual(new Set(painted), new Set(["green", "bold", "dim"]));
});

test("work under way has its progress, and its age", () => {
  const screen = statusScreen(
    {
      ...healthy,
      running: [
        {
          kind: "model.pull",
          key: "model/acme/d:Q8_0",
          model: "acme/d:Q8_0",
          reason: "Missing",
          message: "pull acme/d:Q8_0",
          disrupts: [],
          lane: "transfer",
          startedAt: ago(30),
          progress: { phase: "download", completed: 500, total: 1000, bytesPerSecond: 100, secondsLeft: 5 },
        },
      ],
    },
    plain,
  );
  assert.ok(screen.includes("* pull acme/d:Q8_0 (30s): 500 B of 1.00 kB 100 B/s 5s left"), screen.join("\n"));
});
