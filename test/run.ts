// Runs the tests: sees to the engines first (a fresh machine has none), then every compiled test file, or those named.
// Ends with the runner's own summary. Child processes that outlive the run fail it.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { packageRoot } from "../src/settings/settings.ts";
import { provideChromium } from "./support/chromium.ts";
import { enginesDir, provideEngine } from "./support/engine.ts";
import { leftoverProcesses } from "./support/leftover-processes.ts";
import { provideSherpa } from "./support/sherpa.ts";
import { type TestGroup, testGroups } from "./support/test-groups.ts";

function testFiles(names: readonly string[]): string[] {
  const root = join(packageRoot, "dist", "test");
  // What an earlier build left of a test that is gone or has another name is no test.
  const hasSource = (name: string): boolean => existsSync(join(packageRoot, "test", name.replace(/\.js$/, ".ts")));
  const all = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".test.js") && hasSource(name),
  );
  // Long by their nature: many seeded kills, time limits of the kernel's own. `npm run test:faults` names them.
  const usual = all.filter((name) => !name.startsWith("faults/"));
  // `faults/ chaos` is what has `chaos` of what lies in `faults/`; `component/ !install/` leaves out the installations.
  const folders = names.filter((name) => name.endsWith("/") && !name.startsWith("!"));
  const without = names.flatMap((name) => (name.startsWith("!") ? [name.slice(1)] : []));
  const parts = names.filter((name) => !name.endsWith("/") && !name.startsWith("!"));
  const left = all.filter((name) => !without.some((part) => name.includes(part)));
  const inFolders = folders.length === 0 ? left : left.filter((name) => folders.some((part) => name.includes(part)));
  const named = parts.length === 0 ? inFolders : inFolders.filter((name) => parts.some((part) => name.includes(part)));
  const chosen = names.length === 0 ? usual : named;
  if (chosen.length === 0) throw new Error(`no test file matches ${names.join(" ")}`);
  return chosen;
}

/** Entries that import a group's files each. Numbered: the runner begins with them in the order of their paths. */
function writeEntries(groups: readonly TestGroup[]): string[] {
  const root = join(packageRoot, "dist", "test");
  const folder = join(root, "groups");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  return groups.map(({ name, files }, at) => {
    const [first = ""] = files;
    if (files.length === 1) return join(root, first);
    const entry = join(folder, `${String(at).padStart(2, "0")}-${name}.test.js`);
    writeFileSync(entry, files.map((file) => `import "../${file}";\n`).join(""));
    return entry;
  });
}

async function run(): Promise<number> {
  await provideEngine("llama", console.log);
  await provideEngine("whisper", console.log);
  await provideSherpa(console.log);
  const files = testFiles(process.argv.slice(2));
  if (files.some((name) => name.includes("page"))) await provideChromium(console.log);
  const entries = writeEntries(testGroups(files));
  // Everything that tests write goes here, so that nothing of it can stay.
  const scratch = mkdtempSync(join(tmpdir(), "model-gateway-tests-"));
  const report = `${scratch}.spec`;
  try {
    // More than the two cores of the smallest machine: tests wait more than they compute, those of faults most.
    const atOnce = files.every((name) => name.startsWith("faults/")) ? 5 : 4;
    // The time limit is of an entry, not of a test. A chaos run is as long as asked for.
    const timeoutMs = 900_000 + Number(process.env["CHAOS_MINUTES"] ?? 0) * 60_000;
    const args = [
      "--enable-source-maps",
      // A process lives for ten seconds: a seventh of its processor time went to optimizing code for longer. Small functions are
      // worth it. V8's flags are its own: `--interrupt-budget` did better, and Node 26 refuses to start with it.
      "--max-optimized-bytecode-size=200",
      "--v8-pool-size=1",
      "--test",
      `--test-concurrency=${atOnce}`,
      `--test-timeout=${timeoutMs}`,
      "--test-reporter=tap",
      "--test-reporter-destination=stdout",
      "--test-reporter=spec",
      `--test-reporter-destination=${report}`,
      ...entries,
    ];
    const child = spawn(process.execPath, args, {
      cwd: packageRoot,
      stdio: "inherit",
      env: { ...process.env, TMPDIR: scratch, MODEL_GATEWAY_TEST_ENGINES: enginesDir },
    });
    const code = await new Promise<number>((resolve) => child.once("exit", (status) => resolve(status ?? 1)));
    // What failed, once more at the end: a CI that keeps the last lines of 20,000 would not show it.
    const failing = readFileSync(report, "utf8").split("failing tests:")[1];
    if (failing !== undefined) console.error(`failing tests:${failing}`);
    const left = await leftoverProcesses(scratch);
    for (const { pid, command } of left) console.error(`left running: ${pid} ${command}`);
    const remains = readdirSync(scratch);
    for (const name of remains) console.error(`left behind: ${relative(tmpdir(), join(scratch, name))}`);
    return left.length > 0 || remains.length > 0 ? 1 : code;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    rmSync(report, { force: true });
  }
}

process.exitCode = await run();
