// Compiles the program. With --if-changed only where its sources differ from those that `dist` was made of: by their content,
// as times say nothing after a checkout or a copy. `npm start` begins here, so an old Node is told so before anything is loaded.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`model-gateway: Node 20.19 or newer is needed, and this is Node ${process.versions.node}`);
  process.exit(1);
}

const { spawnSync } = require("node:child_process");
const { createHash } = require("node:crypto");
const { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { basename, join, relative } = require("node:path");

const program = join(__dirname, "dist", "program", "cli.js");
const stamp = join(__dirname, "dist", "sources.sha256");

function addFolder(hash, folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) addFolder(hash, path);
    else hash.update(`${relative(__dirname, path)}\0`).update(readFileSync(path));
  }
}

function hashOfSources() {
  const hash = createHash("sha256").update(readFileSync(join(__dirname, "tsconfig.json")));
  for (const folder of ["schemas", "src"]) addFolder(hash, join(__dirname, folder));
  return hash.digest("hex");
}

/** The code that ajv makes of the document's schema, in place of ajv and the schema: see there. */
const schemaCheck = {
  name: "schema-check",
  setup(bundle) {
    bundle.onLoad({ filter: /schema-check\.ts$/ }, async ({ path }) => {
      const { ajv, validate } = await import(`./dist/${relative(__dirname, path).replace(/ts$/, "js")}`);
      return { contents: require("ajv/dist/standalone").default(ajv, validate), resolveDir: __dirname };
    });
  },
};

/** For browsers: one script, with what it needs of the client and of Preact. Types are checked by `npm run lint`. */
function bundlePage() {
  const from = join(__dirname, "src", "page");
  const to = join(__dirname, "dist", "page");
  mkdirSync(to, { recursive: true });
  // Not before it is needed: its executable is loaded with it.
  require("esbuild").buildSync({
    entryPoints: [join(from, "main.tsx"), join(from, "page.css")],
    entryNames: "page",
    outdir: to,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    logLevel: "error",
  });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(from, name), join(to, name));
}

/**
 * For Node: the program, its worker threads and the parts of its packages that it uses, in few files. Node needed half a second of
 * processor time to find and load 600 of them at each start. Entries lie beside each other: a thread is found by its name.
 */
async function bundleProgram() {
  const from = join(__dirname, "src");
  const to = join(__dirname, "dist", "program");
  rmSync(to, { recursive: true, force: true });
  const entries = readdirSync(from, { recursive: true, encoding: "utf8" })
    .filter((name) => /(^cli.(main|compile-cache)|(hash|parse|transfer)-worker|sherpa-server)\.ts$/.test(name))
    .map((name) => join(from, name));
  await require("esbuild").build({
    plugins: [schemaCheck],
    entryPoints: Object.fromEntries(entries.map((path) => [basename(path, ".ts"), path])),
    outdir: to,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    // Of undici parts are loaded by their paths.
    external: ["undici"],
    target: "node20",
    // Packages are in CommonJS.
    banner: {
      js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
    },
    logLevel: "error",
  });
  // As it is: what an old Node parses has no imports.
  copyFileSync(join(__dirname, "dist", "src", "cli", "cli.js"), program);
}

async function build() {
  const now = hashOfSources();
  const isBuilt = existsSync(program) && existsSync(stamp) && readFileSync(stamp, "utf8") === now;
  if (isBuilt && process.argv.includes("--if-changed")) return;
  rmSync(stamp, { force: true });
  if (process.stdout.isTTY) console.log("Compiles the program, which takes a moment …");
  const tsc = join(__dirname, "node_modules", "typescript", "bin", "tsc");
  const { status } = spawnSync(process.execPath, [tsc], { cwd: __dirname, stdio: "inherit" });
  process.exitCode = status === null ? 1 : status;
  if (status !== 0) return;
  bundlePage();
  await bundleProgram();
  writeFileSync(stamp, now);
}

void build();
