#!/usr/bin/env node
// The entry: a Node that is too old fails with one sentence. So nothing is imported before that is known, and what stands
// here is as Node 12 reads it; the program itself would end there in a stack trace.
export {};

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major > 20 || (major === 20 && minor >= 19)) {
  void import("./compile-cache.ts")
    .then(({ keepCompiled }) => {
      keepCompiled();
      return import("./main.ts");
    })
    .then(({ main }) => main(process.argv.slice(2)))
    .then((code) => {
      if (code !== null) process.exitCode = code;
    });
} else {
  console.error(`model-gateway: Node 20.19 or newer is needed, and this is Node ${process.versions.node}`);
  process.exitCode = 1;
}
