// The help text, from the same table that the settings are read by.

import { settingRows } from "../settings/settings.ts";
import { sharedVariables } from "../settings/shared.ts";

const told = (row: (typeof settingRows)[number]): string =>
  `  --${row.flag} (${row.variable}, default ${row.default || "none"})\n      ${row.help}`;

/** Most settings do not apply to a worker. */
export function workerHelpText(): string {
  const own: readonly string[] = ["state", "rpc-server", "install-engine", "stop-grace"];
  return `Usage: model-gateway worker [--host 127.0.0.1] [--port 50052] [--threads N]

Lends this machine to a gateway elsewhere: runs a ggml-rpc-server and restarts it
when it dies. Ctrl+C ends it.

  --host ADDRESS   the IPv4 address of this machine on which it is reached;
                   127.0.0.1: from here only, 0.0.0.0: on every address
  --port PORT      50052
  --threads N      as many as the engine thinks fit

Anyone who reaches the port can use the worker and read the traffic: keep it in a
network that you trust.

Settings:
${settingRows
  .filter(({ flag }) => own.includes(flag))
  .map(told)
  .join("\n")}`;
}

export function helpText(): string {
  const settings = settingRows.map(told);
  const shared = sharedVariables.map((row) => `  ${row.variable} (default ${row.fallback})\n      ${row.meaning}`);
  return `Usage: model-gateway COMMAND [SETTINGS]

Commands:
  serve            run the gateway
  plan             show what will be done: exit 0 nothing, 2 changes, 1 error
                   or gateway.yaml is not in force
  status           show what is true: exit 0 ready, 2 not ready, 1 as for plan
  models           list the model cache: sizes, last use, what is stale;
                   plan, models and gc work without a running gateway
  pull ID          add a model to the document and follow its download;
                   Ctrl+C leaves it, and the download continues.
                   Exit 0 done, 130 left, 1 error
  rm ID [--yes]    delete a model's files: exit 0 done, 2 not confirmed, 1 error
  gc [--yes]       list what nothing in the cache uses, with --yes delete it:
                   exit 0 nothing left, 2 something remains, 1 error
  validate FILE    check a gateway.yaml: exit 0 valid, 1 not
  engine install [llama|whisper|sherpa]
                   put an engine into the state folder
  worker [--host 127.0.0.1] [--port 50052] [--threads N]
                   lend this machine to a gateway: run a ggml-rpc-server and
                   restart it when it dies
  key create NAME [--scope chat] [--expires 30d|2027-01-01]
                   create a license key and print it, once; it is valid at
                   once. Scope chat: list models, use them and read the
                   status, nothing else
  key list         names, scopes and times of the keys
  key revoke NAME  revoke a key, from the next request on
  version, help

  --json           plan, status, models, gc, rm and key as JSON
  --force          let pull, rm and gc change a gateway on --port that is not
                   the one of the state folder

Settings:
${settings.join("\n")}

Settings shared with other programs:
${shared.join("\n")}`;
}
