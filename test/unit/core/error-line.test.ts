// The one line of an engine's output that goes into an answer.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { errorLine } from "../../../src/core/error-line.ts";

describe("errorLine", () => {
  for (const [what, output, line] of [
    [
      "the last line of a traceback, with a file's name for its path",
      'Traceback (most recent call last):\n  File "/usr/lib/python3/piper/server.py", line 3, in <module>\n    main()\nValueError: Unable to find voice: /home/me/state/voices/a.onnx (use piper.download_voices)\n',
      "ValueError: Unable to find voice: a.onnx (use piper.download_voices)",
    ],
    [
      "a path with a space, in quotes",
      "FileNotFoundError: [Errno 2] No such file or directory: '/home/My User/voices/x.onnx.json'",
      "FileNotFoundError: [Errno 2] No such file or directory: 'x.onnx.json'",
    ],
    [
      "the message above a stack",
      "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module 'sherpa-onnx-node'\n    at Module._resolve (node:internal/x:1)\n\nNode.js v20.19.0\n",
      "Error: Cannot find module 'sherpa-onnx-node'",
    ],
    [
      "a compiler's path",
      "/__w/sherpa-onnx/csrc/vits-model.cc:Init:123 'sample_rate' does not exist in the metadata",
      "vits-model.cc:Init:123 'sample_rate' does not exist in the metadata",
    ],
    [
      "a failure before what came after it",
      "error: failed to initialize whisper context\nmain: 2 threads\n",
      "error: failed to initialize whisper context",
    ],
    ["a path of Windows", String.raw`C:\Users\me\x.onnx: Permission denied`, "x.onnx: Permission denied"],
    ["the last line, where none names a failure", "loading\nfree(): corrupted\n", "free(): corrupted"],
    [
      "addresses and alternatives as they are",
      "error: and/or https://a.example/b/c",
      "error: and/or https://a.example/b/c",
    ],
    ["nothing", " \n", ""],
    ["not more than a line", `error ${"x".repeat(1_000)}`, `error ${"x".repeat(294)}`],
  ] as const)
    it(what, () => assert.equal(errorLine(output), line));
});
