// Which way imports may point, and which package is used where. Type-only imports count like any other.
// Read by `npm run check:imports`, which also fails when suspiciously few modules were seen.

/**
 * From the bottom up: a module imports from its own room and from those before it. `true`: free of effects, such a room imports no
 * `node:*`, and of packages only those named below.
 */
const purity = {
  schemas: false,
  "src/client": false,
  "src/undici": false,
  "src/core": true,
  "src/settings": false,
  "src/speech": true,
  "src/cache/layout": true,
  "src/cache/gguf": false,
  "src/desired/document": true,
  "src/starter": true,
  "src/packaging": true,
  "src/plan": true,
  "src/cache/report": true,
  "src/status": true,
  "src/page": false,
  "src/http/json": true,
  "src/http/ollama/wire": true,
  "src/state": false,
  "src/keys": false,
  "src/desired": false,
  "src/hub": false,
  "src/cache/download": false,
  "src/cache/removal": false,
  "src/cache/scan": false,
  "src/cache/inventory": false,
  "src/engines/process": false,
  "src/engines/install": false,
  "src/engines/llama": false,
  "src/engines/speech": false,
  "src/rpc": false,
  "src/memory": false,
  "src/observe": false,
  "src/execute": false,
  "src/reconcile": false,
  "src/catalog": true,
  "src/metrics": true,
  "src/scheduler/state": true,
  "src/scheduler": false,
  "src/commands": false,
  "src/http/auth": false,
  "src/http/server": false,
  "src/http/proxy": false,
  "src/http/openai": false,
  "src/http/ollama": false,
  "src/http/admin": false,
  "src/http/speech": false,
  "src/http/hub": false,
  "src/http": false,
  "src/app": false,
  "src/import": true,
  "src/cli": false,
};
const rooms = Object.keys(purity);

/** A room's own files, without those of the rooms inside it. */
const inside = (room) => ({
  path: `^${room}(/|\\.ts$)`,
  pathNot: rooms.filter((other) => other.startsWith(`${room}/`)).map((other) => `^${other}/`),
});
const anyRoom = rooms.map((room) => `^${room}(/|\\.ts$)`);

/** Each package in the one place that wraps it. */
const packages = {
  ajv: "^src/(desired/document/(schema-check|validate)|http/server/validate)\\.ts$",
  chokidar: "^src/desired/file-source\\.ts$",
  fastify: "^src/(http|app)/",
  ini: "^src/plan/preset-file\\.ts$",
  "json-schema-to-ts": "^schemas/",
  "p-queue": "^src/execute/",
  pino: "^src/cli/",
  preact: "^src/page/",
  undici: "^src/(undici\\.ts$|(hub|engines|http)/)",
  yaml: "^src/(desired/|import/swap-config\\.ts$)",
};

const inPackage = (name) => `(^|/)node_modules/${name}/`;

module.exports = {
  forbidden: [
    ...rooms.slice(0, -1).flatMap((room, index) =>
      rooms.slice(index + 1).map((above) => ({
        name: `${room}-below-${above}`,
        comment: `${room} must not know ${above}`,
        severity: "error",
        from: inside(room),
        to: inside(above),
      })),
    ),
    {
      name: "every-module-has-a-room",
      comment: "a new folder takes its place among the rooms",
      severity: "error",
      from: { path: "^(src|schemas)/", pathNot: anyRoom },
      to: {},
    },
    {
      name: "every-imported-module-has-a-room",
      comment: "a new folder takes its place among the rooms",
      severity: "error",
      from: {},
      to: { path: "^(src|schemas)/", pathNot: anyRoom },
    },
    {
      name: "pure-takes-nothing-from-the-machine",
      comment: "what a pure module needs of the machine comes in as data",
      severity: "error",
      from: { path: ["^schemas/document\\.ts$", ...rooms.filter((room) => purity[room]).map((room) => `^${room}/`)] },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "the-page-is-for-browsers",
      comment: "what the status page takes of the gateway, a browser must have too",
      severity: "error",
      from: { path: "^src/page/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "the-page-is-bundled",
      comment: "the gateway serves the page as files; its decisions are tested by themselves",
      severity: "error",
      from: { path: "^(src|schemas)/", pathNot: "^src/page/" },
      to: { path: "^src/page/" },
    },
    ...Object.entries(packages).map(([name, path]) => ({
      name: `${name}-is-confined`,
      comment: `${name} is used in ${path} only`,
      severity: "error",
      from: { path: "^(src|schemas)/", pathNot: path },
      to: { path: inPackage(name) },
    })),
    {
      name: "packages-have-a-place",
      comment: "a package is used where the table of packages says; one for development not at all",
      severity: "error",
      from: { path: "^(src|schemas)/" },
      to: { path: "(^|/)node_modules/", pathNot: Object.keys(packages).map(inPackage) },
    },
    {
      name: "processes-are-engines",
      comment: "processes are started in src/engines, which sees to it that they end",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/engines/" },
      to: { path: "^(node:)?child_process$" },
    },
    {
      name: "starter-is-for-the-first-start",
      comment: "the starter model is written at the first start and by tests",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/starter/", "^src/app/"] },
      to: { path: "^src/starter/" },
    },
    {
      name: "program-without-tests",
      comment: "tests know the program, never the reverse",
      severity: "error",
      from: { path: "^(src|schemas)/" },
      to: { path: "^test/" },
    },
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "everything-is-there", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    // TypeScript 7 has no compiler API for it to read with: without swc it would see no module at all, and pass.
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^dist/" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
