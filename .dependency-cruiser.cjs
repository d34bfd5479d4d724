// Which way imports may point, and which package is used where. Type-only imports count like any other.
// Read by `npm run check:imports`, which also fails when suspiciously few modules were seen.

/** Free of effects: they import no `node:*`, and of packages only those named below. */
const pure = [
  "^src/plan/",
  "^src/starter/",
  "^src/status/(conditions|finding|requests|worker-conditions|report|speech)\\.ts$",
  "^src/desired/(bounds|document|parse|validate)\\.ts$",
  "^src/observe/cache-layout\\.ts$",
  "^src/hub/(select|layout|capabilities|extents|work-list|pace)\\.ts$",
  "^src/http/(body-scan|body-values|sse|guards|errors)\\.ts$",
  "^src/http/native/(fields|options|chat-messages|(chat|generate|embed)-request)\\.ts$",
  "^src/http/native/((chat|generate|model)-records|show-body)\\.ts$",
  "^src/http/(openapi|json-fault|size-line|places)\\.ts$",
  "^src/speech/(model-card|plain-text|sherpa-voice|sounds|synthesis|text|transcription-models|voice-config|voices|wav)\\.ts$",
  "^src/http/keys/(key-list|cors)\\.ts$",
];

/** From the bottom up: a module imports from its own layer and from those before it. */
const layers = [
  { name: "schemas", path: ["^schemas/"] },
  { name: "client", path: ["^src/client/"] },
  { name: "core", path: ["^src/core/"] },
  { name: "pure", path: pure },
  { name: "desired", path: ["^src/desired/"], pathNot: pure },
  { name: "hub", path: ["^src/hub/"], pathNot: pure },
  { name: "speech", path: ["^src/speech/"], pathNot: pure },
  { name: "engines", path: ["^src/engines/"] },
  { name: "observe", path: ["^src/observe/"], pathNot: pure },
  { name: "execute", path: ["^src/execute/"] },
  { name: "reconcile", path: ["^src/reconcile/"] },
  { name: "status", path: ["^src/status/"], pathNot: pure },
  { name: "http", path: ["^src/http/"], pathNot: pure },
  { name: "settings", path: ["^src/(settings|settings-(limits|shared|table|values)|lifecycle|lock|open-files)\\.ts$"] },
  { name: "gateway", path: ["^src/gateway\\.ts$", "^src/gateway/"] },
  { name: "cli", path: ["^src/cli\\.ts$", "^src/cli/"] },
];

/** Each package in the one place that wraps it. */
const packages = {
  ajv: "^src/(desired|http)/validate\\.ts$",
  chokidar: "^src/desired/file-source\\.ts$",
  fastify: "^src/(http/|gateway(\\.ts$|/))",
  ini: "^src/plan/preset-file\\.ts$",
  "json-schema-to-ts": "^schemas/",
  "p-queue": "^src/execute/",
  pino: "^src/cli/",
  undici: "^src/(hub|speech|engines|http|cli)/",
  yaml: "^src/desired/",
};

const inPackage = (name) => `(^|/)node_modules/${name}/`;

module.exports = {
  forbidden: [
    ...layers.slice(0, -1).map(({ name, path, pathNot }, index) => ({
      name: `${name}-imports-downwards`,
      comment: `${name} must not know ${layers
        .slice(index + 1)
        .map((layer) => layer.name)
        .join(", ")}`,
      severity: "error",
      from: { path, ...(pathNot ? { pathNot } : {}) },
      to: { path: layers.slice(index + 1).flatMap((layer) => layer.path), ...(index < 3 ? {} : { pathNot: pure }) },
    })),
    {
      name: "every-module-has-a-layer",
      comment: "a new folder takes its place among the layers",
      severity: "error",
      from: { path: "^(src|schemas)/", pathNot: layers.flatMap((layer) => layer.path) },
      to: {},
    },
    {
      name: "every-imported-module-has-a-layer",
      comment: "a new folder takes its place among the layers",
      severity: "error",
      from: {},
      to: { path: "^(src|schemas)/", pathNot: layers.flatMap((layer) => layer.path) },
    },
    {
      name: "pure-takes-nothing-from-the-machine",
      comment: "what a pure module needs of the machine comes in as data",
      severity: "error",
      from: { path: ["^src/core/", "^schemas/document\\.ts$", ...pure] },
      to: { dependencyTypes: ["core"] },
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
      from: { path: "^src/", pathNot: ["^src/starter/", "^src/gateway(\\.ts$|/)"] },
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
