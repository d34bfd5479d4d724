// The real engines for tests. A missing engine is a failure and not a skip: what is not run is not known to work.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { locateEngine } from "../../src/engines/locate.ts";

/** Absolute path of the llama-server to test with; MODEL_GATEWAY_TEST_ENGINES names another engines folder. */
export async function llamaServer(): Promise<string> {
  const enginesDir = process.env["MODEL_GATEWAY_TEST_ENGINES"] ?? join(projectRoot(), "state", "engines");
  const found = await locateEngine("llama-server", {
    explicit: undefined,
    pathVariable: process.env["PATH"] ?? "",
    enginesDir,
  });
  if (!found) {
    throw new Error(`no llama-server in PATH or ${enginesDir}: run \`model-gateway engine install\` first`);
  }
  return found.path;
}

/** The folder with package.json: the compiled tests lie deeper than the sources. */
function projectRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("no package.json above the tests");
    folder = parent;
  }
  return folder;
}
