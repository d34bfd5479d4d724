// Prefixes of families: what the check of the settings knows of the routes, and what happens should it know too little.
import assert from "node:assert/strict";
import { test } from "node:test";
import pino from "pino";
import { startGateway } from "../../src/app/gateway.ts";
import { llamaWords, ownWords } from "../../src/settings/prefixes.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { llamaServer } from "../support/engine.ts";
import { makeFolders, startTestGateway } from "../support/gateway.ts";
import { watchRoutes } from "../support/served-routes.ts";

test("every address at the root is known to the check of the prefixes", async (t) => {
  const routes = watchRoutes(t);
  await startTestGateway(t, {
    yaml: "version: 1\n",
    flags: ["--native-prefix", "/x/y/z", "--compat-prefix", "/x/y/w"],
  });
  const firstWords = new Set(routes.map(({ path }) => path.split("/")[1] ?? ""));
  const families = ["", "x", "api", "v1"];
  const unknown = [...firstWords].filter((word) => ![...families, ...ownWords, ...llamaWords].includes(word));
  assert.deepEqual(unknown, []);
  const below = routes.map(({ path }) => /^\/x\/y\/([^/]+)/.exec(path)?.[1]).filter((word) => word !== undefined);
  assert.deepEqual(new Set(below.filter((word) => !["z", "w", "v1", ...llamaWords].includes(word))), new Set());
});

test("routes that clash end the start, not the process", async (t) => {
  const { stateDir, configPath, cacheDir, root, writeConfig } = await makeFolders(t);
  await writeConfig("version: 1\n");
  const { settings } = readSettings(
    ["serve", "--port", "0", "--state", stateDir, "--config", configPath, "--llama-server", await llamaServer()],
    { HOME: root, HF_HUB_CACHE: cacheDir, HF_ENDPOINT: "http://127.0.0.1:9" },
  );
  await assert.rejects(
    startGateway({ settings: { ...settings, nativePrefix: "/v1" }, logger: pino({ level: "silent" }) }),
    { code: "FST_ERR_DUPLICATED_ROUTE", message: /\/v1\/embeddings/ },
  );
});
