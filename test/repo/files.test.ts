// What holds for the project's files as a whole: they name no registry and no machine, and a clean clone installs.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { packageRoot } from "../../src/settings/settings.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

/** Mirrors and registries are a matter of the machine: its own configuration names them. */
const registryHost = /\b(?:registry|npm|pypi|crates|deb|mirrors?)\.[a-z0-9-]+\.(?:org|com|io|dev|net)\b/i;
const machinePath = /(?:^|[^\w.~/-])\/(?:root|work)\/\w/;
/** Where this checkout and its user live. */
const ownPaths = [packageRoot, homedir()].filter((path) => path.length > 4);

test("no file names a package registry or a path of one machine", () => {
  const files = projectFiles();
  assert.ok(files.length > 100, `${files.length} files were found`);
  const names = (line: string): boolean =>
    registryHost.test(line) || machinePath.test(line) || ownPaths.some((path) => line.includes(path));
  const found = files.flatMap((path) =>
    readProjectFile(path)
      .split("\n")
      .flatMap((line, index) => (names(line) ? [`${path}:${index + 1}: ${line}`] : [])),
  );
  assert.deepEqual(found, []);
});

interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

interface LockEntry {
  readonly version?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

test("the lock file names versions and no addresses", () => {
  const { packages } = JSON.parse(readProjectFile("package-lock.json")) as Lock;
  const entries = Object.entries(packages);
  assert.deepEqual(
    entries.filter(([, { resolved }]) => resolved !== undefined).map(([name]) => name),
    [],
  );
  assert.deepEqual(
    entries.filter(([, { version }]) => version === undefined).map(([name]) => name),
    [],
  );
});

test("the lock file has the binaries of every platform", () => {
  // `npm install` leaves out those that its registry does not have, and `npm ci` then refuses the lock file.
  const { packages } = JSON.parse(readProjectFile("package-lock.json")) as Lock;
  const missing = Object.entries(packages).flatMap(([name, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (dependency) => !(`node_modules/${dependency}` in packages || `${name}/node_modules/${dependency}` in packages),
    ),
  );
  assert.deepEqual(missing, []);
});

test("the CI script can be run, and the state folder is there with its page only", () => {
  assert.equal(statSync(join(packageRoot, ".ci", "run")).mode & 0o111, 0o111);
  assert.match(readProjectFile("state/README.md"), /^# state/);
  assert.deepEqual(readProjectFile(".gitignore").match(/^!?state.*$/gm), ["state/*", "!state/README.md"]);
});
