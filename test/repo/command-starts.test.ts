// A command is there within 150 ms, most of which is Node's own start: what it imports before it has asked the gateway is no package,
// and nothing of Node that takes long to load.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { readProjectFile } from "../support/project-files.ts";

const importing = /^(?:import|export) (?!type )[^;]*? from "([^"]+)";/gm;

/** What a module imports, itself and by others, at its start. */
function startOf(path: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const [, name = ""] of readProjectFile(path).matchAll(importing)) {
    if (name.startsWith(".")) startOf(join(path, "..", name), seen);
    else seen.add(name);
  }
  return seen;
}

const quick =
  "apply completion gc history hub loading logs main models plan pull rm rpc run show speech status wait".split(" ");

for (const name of quick)
  test(`src/cli/${name}.ts`, () => {
    const names = [...startOf(`src/cli/${name}.ts`)].filter(
      (each) => !each.startsWith("src/") && !each.startsWith("schemas/"),
    );
    assert.deepEqual(
      names.filter((each) => !each.startsWith("node:") || each === "node:worker_threads"),
      [],
    );
  });

test("what makes a start slow is found", () => {
  assert.ok(startOf("src/cli/validate.ts").has("yaml"));
  assert.ok(startOf("src/cli/serve.ts").has("pino"));
});
