// Flags, environment and defaults: which wins, what is refused, and that no secret gets into a message.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import { GatewayError } from "../../../src/core/errors.ts";
import { packageRoot, readSettings, type Settings, version } from "../../../src/settings/settings.ts";
import type { Environment } from "../../../src/settings/shared.ts";
import { scratchFolder } from "../../support/scratch.ts";

const home = "/home/nobody-at-all";

function read(args: readonly string[] = [], environment: Environment = {}): Settings {
  return readSettings(["serve", ...args], { HOME: home, ...environment }).settings;
}

function problem(args: readonly string[], environment: Environment = {}): GatewayError {
  try {
    read(args, environment);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error;
    throw error;
  }
  throw new Error(`${args.join(" ")} ${JSON.stringify(environment)} was taken`);
}

describe("settings", () => {
  it("tell an address that somebody gives from the default one, and from any free port", () => {
    for (const [args, environment, isGiven] of [
      [["--port", "9000"], {}, true],
      [["--host", "127.0.0.2"], {}, true],
      [[], { GATEWAY_PORT: "9000" }, true],
      [[], { GATEWAY_PORT: "0" }, false],
      [["--port", "0"], {}, false],
    ] as const)
      assert.equal(read(args, environment).isAddressGiven, isGiven, args.join(" "));
  });

  it("have the documented defaults", () => {
    const { environment: _, command: _command, ...settings } = read();
    assert.deepEqual(settings, {
      host: "127.0.0.1",
      port: 8484,
      isAddressGiven: false,
      stateDir: join(packageRoot, "state"),
      configPath: join(packageRoot, "state", "gateway.yaml"),
      cacheDir: join(home, ".cache", "huggingface", "hub"),
      hubEndpoint: "https://huggingface.co",
      hubToken: undefined,
      hubTokenFile: undefined,
      hubTokenPath: null,
      hubMirror: undefined,
      hubMirrorKey: undefined,
      pulls: "on",
      presetAllow: new Set(),
      llamaServer: undefined,
      installEngine: true,
      modelsMax: 4,
      queueLimit: 256,
      transfers: 1,
      resyncMs: 60_000,
      drainMs: 30_000,
      loadTimeoutMs: 600_000,
      startTimeoutMs: 60_000,
      stopGraceMs: 10_000,
      stopDelayMs: 0,
      silenceLimitMs: 20_000,
      waitTimeoutMs: 60_000,
      bodyLimit: 67_108_864,
      headerLimit: 16_384,
      headerTimeoutMs: 60_000,
      requestTimeoutMs: 300_000,
      idleTimeoutMs: 72_000,
      writeStallMs: 600_000,
      maxConnections: 2048,
      eventListeners: 256,
      allowedHosts: [],
      corsOrigins: [],
      metricsOpen: [],
      metricsNames: "gateway",
      licenseKey: undefined,
      licenseKeyFile: undefined,
      nativePrefix: "/alpha/api",
      compatPrefix: "/beta/v1",
      chatContext: "apply",
      keepAliveMs: null,
      whisperServer: undefined,
      speechEngine: "auto",
      piper: undefined,
      speechIdleMs: 600_000,
      uploadStallMs: 15_000,
      uploadTimeMs: 300_000,
      uploadLimit: 536_870_912,
      transcriptionMemory: 4_294_967_296,
      workerIntervalMs: 5_000,
      workerStableMs: 10_000,
      workerStallMs: 60_000,
      rpcServer: undefined,
      logFormat: "auto",
      logLevel: "info",
      userAgent: `model-gateway/${version} serve`,
      writes: "all",
      writesBack: false,
    });
  });

  it("take a flag before the environment, and that before the default", () => {
    assert.equal(read([], { GATEWAY_PORT: "7000" }).port, 7000);
    assert.equal(read(["--port", "7001"], { GATEWAY_PORT: "7000" }).port, 7001);
    assert.equal(read(["--port=7001", "--port", "7002"]).port, 7002);
    assert.equal(read([], { GATEWAY_PORT: "" }).port, 8484);
    assert.equal(read(["--install-engine", "false"], { GATEWAY_INSTALL_ENGINE: "true" }).installEngine, false);
    assert.equal(read([], { GATEWAY_INSTALL_ENGINE: "false" }).installEngine, false);
    assert.deepEqual(read(["--metrics-open", "10.0.0.0/8, FD00::/8"]).metricsOpen, [
      { address: "10.0.0.0", bits: 8 },
      { address: "fd00::", bits: 8 },
    ]);
    assert.match(
      problem(["--metrics-open", "10.0.0.0/33"]).message,
      /--metrics-open \(GATEWAY_METRICS_OPEN\) must list networks/,
    );
    assert.deepEqual(read([], { GATEWAY_ALLOWED_HOSTS: " One.example, two ,," }).allowedHosts, ["one.example", "two"]);
    assert.deepEqual(read([], { GATEWAY_PRESET_ALLOW: "log-file, props" }).presetAllow, new Set(["log-file", "props"]));
    assert.equal(read(["--resync", "0.5"]).resyncMs, 500);
  });

  it("take a switch without a value", () => {
    assert.deepEqual([read([]).writesBack, read(["--write-back"]).writesBack], [false, true]);
    assert.equal(read(["--write-back", "--port", "1"]).port, 1);
    assert.equal(read(["--write-back", "false"], { GATEWAY_WRITE_BACK: "true" }).writesBack, false);
    assert.equal(read([], { GATEWAY_WRITE_BACK: "true" }).writesBack, true);
  });

  it("have the document in the state folder, unless it is elsewhere", () => {
    assert.equal(read(["--state", "/srv/a"]).configPath, "/srv/a/gateway.yaml");
    assert.equal(read(["--state", "/srv/a", "--config", "/etc/g.yaml"]).configPath, "/etc/g.yaml");
    assert.equal(read([], { GATEWAY_STATE: "relative" }).stateDir, resolve("relative"));
  });

  it("read the command, its operands and the switches", () => {
    const { command, operands, flags, json, help } = readSettings(["validate", "a.yaml", "--json", "-h"], {});
    assert.deepEqual(
      { command, operands, flags, json, help },
      { command: "validate", operands: ["a.yaml"], flags: ["json", "help"], json: true, help: true },
    );
    assert.deepEqual([readSettings([], {}).command, readSettings(["-v"], {}).command], ["", "version"]);
  });

  for (const [args, environment, parts] of [
    [["--port", "http"], {}, ["--port", "GATEWAY_PORT", "http"]],
    [[], { GATEWAY_PORT: "70000" }, ["--port", "GATEWAY_PORT", "70000"]],
    [["--port=-1"], {}, ["--port", "-1"]],
    [["--port", "80.5"], {}, ["--port", "whole", "80.5"]],
    [["--port", ""], {}, ["--port", '""']],
    [[], { GATEWAY_RESYNC: "soon" }, ["--resync", "GATEWAY_RESYNC", "soon"]],
    [["--models-max", "0"], {}, ["--models-max", "from 1"]],
    [["--transfers", "NaN"], {}, ["--transfers"]],
    [["--wait-timeout", "Infinity"], {}, ["--wait-timeout"]],
    [["--install-engine", "no"], {}, ["--install-engine", "true, false", "no"]],
    [[], { GATEWAY_LOG_LEVEL: "loud" }, ["--log-level", "GATEWAY_LOG_LEVEL", "loud"]],
    [["--writes", "none"], {}, ["--writes", "all, file", "none"]],
    [["--writes", "file", "--write-back"], {}, ["--write-back", "--writes", "do not go together"]],
    [["--max-connections", "0"], {}, ["--max-connections", "GATEWAY_MAX_CONNECTIONS", "from 1"]],
    [["--native-prefix", "/.."], {}, ["--native-prefix", '"/.."']],
    [["--native-prefix", "/a/../b"], {}, ["--native-prefix", '"/a/../b"']],
    [["--compat-prefix", "/a/./b"], {}, ["--compat-prefix", '"/a/./b"']],
    [["--compat-prefix", "/"], {}, ["--compat-prefix", '"/"']],
    [["--compat-prefix", "/k/v1"], {}, ["--compat-prefix", "/k/v1"]],
    [
      [],
      { GATEWAY_NATIVE_PREFIX: "/v1" },
      ["GATEWAY_NATIVE_PREFIX", "do not go together", "Ollama's API at /v1 would be at or below"],
    ],
    [["--compat-prefix", "/api/v1"], {}, ["--compat-prefix", "/api/v1", "below Ollama's API at /api"]],
    [["--preset-allow", "log-file,ctx-size"], {}, ["--preset-allow", "ctx-size", "use ctxSize"]],
    [[], { GATEWAY_PRESET_ALLOW: "mcp-servers-json" }, ["GATEWAY_PRESET_ALLOW", "mcp-servers-json", "run commands"]],
    [["--preset-allow", "LLAMA_ARG_TOOLS"], {}, ["--preset-allow", "without dashes"]],
    [["--hub-token-file", "/nowhere/token"], {}, ["/nowhere/token", "cannot be read"]],
    [["--no-such-flag"], {}, ["--no-such-flag"]],
    [["--port"], {}, ["--port"]],
    [[], { HF_ENDPOINT: "hub.example" }, ["HF_ENDPOINT"]],
    [[], { HF_ENDPOINT: "file:///etc/passwd" }, ["HF_ENDPOINT"]],
  ] as const) {
    it(`refuse ${JSON.stringify(args)} ${JSON.stringify(environment)} by name`, () => {
      const { message } = problem(args, environment);
      for (const part of parts) assert.ok(message.includes(part), message);
    });
  }

  it("keep times within what a timer can be", () => {
    const { resyncMs, waitTimeoutMs } = read(["--resync", "9999999999", "--wait-timeout", "1e12"]);
    assert.deepEqual([resyncMs, waitTimeoutMs], [2 ** 31 - 1, 2 ** 31 - 1]);
    assert.equal(read(["--resync", "0"]).resyncMs, 100);
  });
});

describe("the model cache's place", () => {
  it("is the first that is set, as llama.cpp looks for it", () => {
    const all = {
      LLAMA_CACHE: "/1",
      HF_HUB_CACHE: "/2",
      HUGGINGFACE_HUB_CACHE: "/3",
      HF_HOME: "/4",
      XDG_CACHE_HOME: "/5",
    };
    const places: string[] = [];
    const environment: Record<string, string | undefined> = { ...all };
    for (const variable of Object.keys(all)) {
      places.push(read([], environment).cacheDir);
      // An empty one counts as none, too.
      environment[variable] = places.length % 2 === 0 ? "" : undefined;
    }
    places.push(read([], environment).cacheDir);
    assert.deepEqual(places, ["/1", "/2", "/3", "/4/hub", "/5/huggingface/hub", `${home}/.cache/huggingface/hub`]);
    assert.equal(readSettings([], {}).settings.cacheDir, join(homedir(), ".cache", "huggingface", "hub"));
    assert.equal(read([], { HF_HUB_CACHE: "rel" }).cacheDir, resolve("rel"));
  });
});

describe("the hub", () => {
  it("is where HF_ENDPOINT says", () => {
    assert.equal(read([], { HF_ENDPOINT: "http://127.0.0.1:9//" }).hubEndpoint, "http://127.0.0.1:9");
    assert.equal(read([], { HF_ENDPOINT: "" }).hubEndpoint, "https://huggingface.co");
  });

  it("gets the token from --hub-token-file, else from HF_TOKEN, else from the file that HF_TOKEN_PATH or HF_HOME names", async (t) => {
    const root = await scratchFolder(t);
    const path = join(root, "secret");
    await writeFile(path, "hf_fromfile\n");
    await mkdir(join(root, "hf"));
    await writeFile(join(root, "hf", "token"), " hf_fromhome ");
    const environment = { HF_TOKEN_PATH: path, HF_HOME: join(root, "hf") };
    assert.equal(read([], { ...environment, HF_TOKEN: " hf_direct\n" }).hubToken, "hf_direct");
    assert.equal(read([], { ...environment, HF_TOKEN: "" }).hubToken, "hf_fromfile");
    await writeFile(join(root, "given"), "hf_given\n");
    const given = { ...environment, HF_TOKEN: "hf_direct" };
    assert.equal(read(["--hub-token-file", join(root, "given")], given).hubToken, "hf_given");
    assert.equal(read([], { ...given, GATEWAY_HUB_TOKEN_FILE: join(root, "given") }).hubToken, "hf_given");
    assert.equal(read([], { HF_HOME: environment.HF_HOME }).hubToken, "hf_fromhome");
    assert.equal(read([], { HF_TOKEN_PATH: join(root, "none") }).hubToken, undefined);
    await writeFile(path, "\n");
    assert.equal(read([], { HF_TOKEN_PATH: path }).hubToken, undefined);
  });

  it("gets a license key from --license-key-file, else from GATEWAY_LICENSE_KEY; an empty file is no open gateway", async (t) => {
    const path = join(await scratchFolder(t), "license-key");
    await writeFile(path, "mgw_of-the-file\n");
    const environment = { GATEWAY_LICENSE_KEY: "mgw_of-the-environment" };
    assert.equal(read([], environment).licenseKey, "mgw_of-the-environment");
    assert.equal(read(["--license-key-file", path], environment).licenseKey, "mgw_of-the-file");
    assert.equal(read([], { ...environment, GATEWAY_LICENSE_KEY_FILE: path }).licenseKey, "mgw_of-the-file");
    await writeFile(path, " \n");
    assert.match(problem(["--license-key-file", path], environment).message, /file .* of the license key is empty/);
  });

  it("has a mirror in front, with a key of its own", async (t) => {
    const path = join(await scratchFolder(t), "mirror-key");
    await writeFile(path, "key\n");
    const flags = ["--hub-mirror", "http://10.0.0.1:8484/hub/", "--hub-mirror-key-file", path];
    const { hubMirror, hubMirrorKey } = read(flags, { HF_TOKEN: "hf_direct" });
    assert.deepEqual([hubMirror, hubMirrorKey], ["http://10.0.0.1:8484/hub", "key"]);
    for (const address of ["10.0.0.1:8484", "ftp://10.0.0.1/", "http://user:verysecret@10.0.0.1/"]) {
      const { message } = problem([], { GATEWAY_HUB_MIRROR: address });
      assert.match(message, /--hub-mirror/);
      assert.doesNotMatch(message, /verysecret/);
    }
    assert.ok(problem(["--hub-mirror-key-file", `${path}2`], {}).message.includes(`${path}2`));
  });

  it("has its token's file named where that cannot be read", async (t) => {
    const root = await scratchFolder(t);
    assert.ok(problem([], { HF_TOKEN_PATH: root }).message.includes(root));
  });
});

describe("what is refused", () => {
  it("shows no secret that stands beside it", () => {
    const secrets = { HF_TOKEN: "hf_SECRET", GATEWAY_LICENSE_KEY: "SECRET" };
    const errors = [
      problem(["--hf-token=SECRET"]),
      problem(["--port", "x"], secrets),
      problem([], { ...secrets, HF_ENDPOINT: "ftp://user:SECRET@hub.example" }),
      problem([], { ...secrets, HF_ENDPOINT: "SECRET" }),
      problem([], { ...secrets, GATEWAY_LOG_LEVEL: "loud" }),
    ];
    for (const error of errors) assert.ok(!inspect(error).includes("SECRET"), inspect(error));
  });
});
