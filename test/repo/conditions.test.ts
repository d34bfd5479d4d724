// The condition tables and the source that reports by them agree, both ways.
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorCatalog } from "../../src/core/error-catalog.ts";
import { type ConditionType, conditionTable } from "../../src/status/condition-table.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const conditions: readonly (readonly [string, ConditionType])[] = Object.entries(conditionTable);
const errorReasons = Object.values(errorCatalog).map(({ reason }) => reason);

function reasonsOf(...types: readonly (keyof typeof conditionTable)[]): string[] {
  return types.flatMap((type) => Object.keys(conditionTable[type].reasons));
}

test("each reason of the tables is reported somewhere", () => {
  const source = projectFiles("src")
    .filter((path) => path.endsWith(".ts"))
    .filter((path) => path !== "src/status/condition-table.ts")
    .map(readProjectFile)
    .join("\n");
  const unused = conditions.flatMap(([type, { reasons }]) =>
    Object.keys(reasons).flatMap((reason) => (source.includes(`"${reason}"`) ? [] : [`${type} ${reason}`])),
  );
  assert.deepEqual(unused, []);
});

// These parts find out by themselves; what they say is handed on, so that no type checks it.
for (const [types, files] of [
  [["SourceValid"], ["src/desired/file-source.ts"]],
  [["StateWritable"], ["src/state/state-folder.ts"]],
  [
    ["Reachable"],
    ["src/plan/worker-verdict.ts", "src/rpc/worker-watch.ts", "src/rpc/worker-target.ts", "src/rpc/worker-wire.ts"],
  ],
] as const)
  test(`what ${files.join(", ")} report is in the table of ${types.join(", ")}`, () => {
    const source = files.map(readProjectFile).join("\n");
    const literals = [
      ...source.matchAll(
        /(?:reason: (?:\w+ \? "\w+" : )?|new WorkerFault\(\s*|unapplied\(path, |report\(\s*|noteFailure\(\s*|reason: \w+ \? )"([A-Z]\w+)"/g,
      ),
    ].map((match) => match[1] ?? "");
    assert.ok(literals.length > 1, "the search for literals finds none any more");
    const known = [...reasonsOf(...types), ...errorReasons];
    assert.deepEqual(
      literals.filter((reason) => !known.includes(reason)),
      [],
    );
  });

test("messages and remedies are sentences", () => {
  for (const [type, { reasons }] of conditions)
    for (const [reason, { meaning, remedy }] of Object.entries(reasons))
      for (const sentence of [meaning, remedy ?? "Fine."])
        assert.match(sentence, /^(?:[A-Z]|gateway\.yaml|llama-server).*\.$/, `${type} ${reason}`);
});
