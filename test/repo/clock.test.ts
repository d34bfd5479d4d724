// Durations go by a clock that is never set (src/core/steady.ts): a deadline by the wall clock fires at once, or a day late.
import assert from "node:assert/strict";
import { test } from "node:test";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

/** Where the wall clock is meant: for dates that people read or files know. */
const dates: Readonly<Record<string, string>> = {
  "src/cli/key.ts": "when a key was made and expires",
  "src/app/machine.ts": "dates in the inventory; ages of files",
  "src/app/logs.ts": "when an engine printed a line",
  "src/cli/kept-logs.ts": "the same",
  "src/cli/doctor/bundle.ts": "the same",
  "src/cli/doctor/doctor.ts": "since when the gateway runs",
  "src/cli/doctor/hub-facts.ts": "whether this machine's clock is right",
  "src/cli/status.ts": "how long ago something was",
  "src/cli/requests.ts": "the same",
  "src/app/record.ts": "the time of the last success",
  "src/state/state-folder.ts": "a part of a file's name",
  "src/app/core.ts": "dates in the journal",
  "src/app/gateway.ts": "since when it stops; when license keys expire",
  "src/app/state.ts": "who changed the document when; when models were used",
  "src/http/admin/status.ts": "vLLM tells the time of its gauge",
  "src/app/status.ts": "when it started; dates in the conditions",
  "src/app/server.ts": "when a removal was asked for",
  "src/http/openai/responses-stream.ts": "when a response was created",
  "src/http/proxy/in-flight.ts": "when a request began",
  "src/hub/errors.ts": "Retry-After may be a date",
  "src/hub/http.ts": "when the hub answered last",
  "src/cache/download/in-use.ts": "the age of a file",
  "src/cache/download/leftovers.ts": "the age of a file",
};

test("the wall clock is read for dates only", () => {
  const found = projectFiles().filter(
    (path) =>
      path.startsWith("src/") &&
      path.endsWith(".ts") &&
      path !== "src/core/steady.ts" &&
      /\bDate\.now\b/.test(readProjectFile(path)),
  );
  assert.deepEqual(found.toSorted(), Object.keys(dates).toSorted());
});
