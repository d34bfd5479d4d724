// Every row of the interface has a test: this file names the rows, a test names its row at the start of its title, as in
// "interface 4, Eject: the files stay". It looks at titles only; what a test asserts is the test's own business.
// A shape of section 2 and a transition of section 3 that belong to one endpoint stand with that endpoint.
import assert from "node:assert/strict";
import { test } from "node:test";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

/** Section and name of a row, and in our own words what is promised there. */
const rows: Readonly<Record<string, string>> = {
  "1, Route families": "both families are there and lead to the one router",
  "1, Models in the cache": "what lies in the hub's cache is listed",
  "1, Context size in a chat": "a chat that carries another context size waits until it is in force",
  "2, Model identifier":
    "repository and tag; the tag from the file's name; .gguf and :latest stripped; short tags resolved",
  "2, Model entry": "context_length is what the router uses, n_ctx_train what the file says or left out, loaded",
  "2, Preset file": "a section per model with a size of its own, and [*] for the others",
  "3, loaded": "the one state that clients see",
  "3, keep_alive 0": "loaded becomes not loaded by a native chat or generate with keep_alive 0; nothing is generated",
  "4, Chat and model list": "chat completions, streamed, with tools; the list of entries",
  "4, Native routes": "chat, generate and ps",
  "4, Status": "connection check, RPC mode and roster",
  "4, Pull":
    "absent becomes present; progress; back only when the router is; nothing partial is left by a failure or a cancel",
  "4, Context size":
    "set-ctx-size answers when the size is in force, with ok, model and ctx_size; the model stays what it was",
  "4, Context size on no command line": "the router is never given a context size on its command line",
  "4, Eject": "loaded becomes not loaded, the file stays; ok and model",
  "4, Remove":
    "loaded or not: unload, links and blobs of every shard, preset section, router; what was deleted is told",
  "4, RPC": "mode, workers, workers/remove",
  "4, Hub search": "q and limit; GGUF repositories only; id, downloads and likes",
  "4, Repository files": "path and size of the .gguf files of a repository, unfiltered and ungrouped",
  "4, Transcription": "multipart passed to the engine's own route; text",
  "4, Speech": "WAV; another voice is fetched and loaded first, the same one restarts nothing",
  "4, Cached voices": "what is downloaded",
  "4, Voice search": "by id, speaker or language, whatever the case; eight fields",
  "4, Cached transcription models": "ggml files in the cache",
  "4, Transcription model search": "by file name, as repository file entries",
  "4, Speech is off": "off unless it is asked for",
  "5, Authentication": "chat needs a license key",
  "5, Routes without a key": "hub search, repository files, the six speech routes",
  "5, Hub token": "the gateway's own, for all clients; they send none",
  "6, Events": "chats and pulls are streams of their own kind",
  "7, Errors":
    "remove-model of a model that is not in the cache is 404; bodies that cannot be are refused in the family's shape",
  "8, Router after a pull": "up to 60 s",
  "8, Hub search limit": "20 unless asked otherwise",
  "8, Voice search maximum": "50",
  "9, Versioning": "the compatible family's path has v1, the others have none",
};

const titles = projectFiles("test")
  .filter((path) => path.endsWith(".test.ts") && path !== "test/repo/interface.test.ts")
  .flatMap((path) =>
    [...readProjectFile(path).matchAll(/(["'`])interface (\d[^"`]*?)\1/g)].map((match) => match[2] ?? ""),
  );

function isOf(row: string, title: string): boolean {
  return title.startsWith(`${row}:`);
}

function hasTest(row: string): boolean {
  return titles.some((title) => isOf(row, title));
}

test("every row of the interface has a test", () => {
  const without = Object.entries(rows).filter(([row]) => !hasTest(row));
  assert.deepEqual(
    without.map(([row, promise]) => `interface ${row}: ${promise}`),
    [],
  );
});

test("every test that names a row of the interface names one that there is", () => {
  const unknown = titles.filter((title) => !Object.keys(rows).some((row) => isOf(row, title)));
  assert.deepEqual(unknown, []);
});
