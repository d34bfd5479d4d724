// A set-up that service files are made from, with what is special in each of their formats.
import type { Setup } from "../../src/packaging/setup.ts";

export const special = `/srv/my models/$HOME $(id) %h "x" 'y' \\ <a>&amp; {b}: #c`;

export function setupWith(more: Partial<Setup> = {}): Setup {
  return {
    version: "0.1.0",
    program: [process.execPath, "/opt/model-gateway/cli.js"],
    account: { name: "ada", uid: 1001, gid: 1001 },
    gpuGroups: [],
    host: "127.0.0.1",
    port: 8484,
    stateDir: "/srv/state",
    cacheDir: "/srv/cache",
    configPath: "/srv/state/gateway.yaml",
    writesBack: false,
    licenseKeyFile: null,
    hubTokenFile: null,
    flags: [],
    engineFlags: [],
    variables: {},
    stopGraceMs: 10_000,
    stopDelayMs: 0,
    ...more,
  };
}

/** Everything set, and hard to write. */
export const fullSetup = setupWith({
  port: 9000,
  stateDir: special,
  cacheDir: `${special}/hub`,
  configPath: "/etc/model gateway/gateway.yaml",
  licenseKeyFile: "/etc/keys/license-key",
  hubTokenFile: "/etc/keys/hub-token",
  flags: [`--preset-allow=${special}`, "--keep-alive=5m"],
  engineFlags: [`--llama-server=${special}`],
  variables: { NO_PROXY: special },
});

/** That of docs/deploy/compose.yaml. */
export const composeSetup = setupWith({
  account: null,
  stateDir: "state",
  cacheDir: "models",
  configPath: "state/gateway.yaml",
  licenseKeyFile: "./license-key.txt",
});
