// `package`: the service file has the settings that are given, and no secret.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse as parsePlist } from "plist";
import { parseAllDocuments } from "yaml";
import { commandHere } from "../../support/command.ts";
import { makeFolders } from "../../support/folders.ts";

test("package", async (t) => {
  const folders = await makeFolders(t);
  const keyFile = join(folders.root, "license-key");
  await writeFile(keyFile, "mgw_key-of-the-test-0123456789\n");
  const environment = {
    GATEWAY_KEEP_ALIVE: "5m",
    GATEWAY_LICENSE_KEY_FILE: keyFile,
    HF_TOKEN: "hf_secret-of-the-test",
    HTTPS_PROXY: "http://user:password@proxy.example",
    NO_PROXY: "localhost",
  };
  const run = (...args: readonly string[]) => commandHere(folders, ["package", ...args], environment);
  const isRoot = process.getuid?.() === 0;

  await t.test("launchd: flags, variables, files of secrets", async () => {
    const { code, stdout, stderr } = await run("launchd", "--port", "9000", "--llama-server", process.execPath);
    assert.equal(code, 0);
    const agent = parsePlist(stdout) as { ProgramArguments: string[]; EnvironmentVariables: Record<string, string> };
    const expected = [
      "serve",
      "--host=127.0.0.1",
      "--port=9000",
      `--state=${folders.stateDir}`,
      `--config=${folders.configPath}`,
      `--llama-server=${process.execPath}`,
      "--keep-alive=5m",
    ];
    assert.deepEqual(
      agent.ProgramArguments.filter((word) => expected.includes(word)),
      expected,
    );
    assert.equal(agent.ProgramArguments.filter((word) => word.startsWith("--port")).length, 1);
    const { PATH: _, ...variables } = agent.EnvironmentVariables;
    assert.deepEqual(variables, {
      HF_HUB_CACHE: folders.cacheDir,
      HF_ENDPOINT: "http://127.0.0.1:9",
      NO_PROXY: "localhost",
      GATEWAY_LICENSE_KEY_FILE: keyFile,
    });
    assert.doesNotMatch(stdout, /secret-of-the-test|key-of-the-test|password/);
    assert.match(stderr, /^Note: HTTPS_PROXY has a secret and is left out/m);
    assert.match(stderr, /^Note: HF_TOKEN has a secret and is left out/m);
  });

  await t.test("k8s: the document as it is, with a note of its files", async () => {
    const document = 'version: 1\nmodels: [{ id: "acme/alpha:Q8_0", source: ./alpha.gguf, chatTemplate: ./a.jinja }]\n';
    await folders.writeConfig(document);
    const { code, stdout, stderr } = await run("k8s");
    assert.equal(code, 0);
    const [configMap] = parseAllDocuments(stdout).map((each) => each.toJS() as { data?: unknown });
    assert.deepEqual(configMap?.data, { "gateway.yaml": document });
    assert.match(stderr, /names files, which the ConfigMap does not have: \.\/alpha\.gguf, \.\/a\.jinja$/m);
    await folders.writeConfig("modles: []\n");
    const broken = await run("k8s");
    assert.deepEqual([broken.code, broken.stdout], [1, ""]);
    assert.match(broken.stderr, /gateway\.yaml is not valid: /);
  });

  await t.test("systemd, compose: never as root", async () => {
    for (const kind of ["systemd", "compose"]) {
      const { code, stdout, stderr } = await run(kind);
      if (!isRoot) assert.match(stdout, kind === "systemd" ? /^User=\S+$/m : /^ {2}user: "\d+:\d+"$/m);
      else {
        assert.deepEqual([code, stdout], [1, ""]);
        assert.match(stderr, /a service does not run as root: run this as the account that shall write to /);
      }
    }
    if (!isRoot) return;
    const own = { GATEWAY_STATE: "", HF_HUB_CACHE: "" };
    const unit = await commandHere(folders, ["package", "systemd"], own);
    assert.match(unit.stdout, /^DynamicUser=yes$/m);
    assert.match(unit.stdout, /^StateDirectory=model-gateway$/m);
    const compose = await commandHere(folders, ["package", "compose"], own);
    assert.match(compose.stdout, /^ {2}user: "1000:1000"$/m);
  });

  await t.test("what it cannot make", async () => {
    const unknown = await run("upstart");
    assert.deepEqual([unknown.code, unknown.stdout], [1, ""]);
    assert.match(unknown.stderr, /there is no package upstart: choose systemd, compose, k8s, launchd/);
    await writeFile(keyFile, "\n");
    assert.match((await run("systemd")).stderr, /the file \S+ of the license key is empty/);
    const missing = await run("systemd", "--license-key-file", join(folders.root, "none"));
    assert.match(missing.stderr, /the file \S+none of the license key cannot be read/);
  });
});
