// The help text, from the same table that the settings are read by.

import { settingRows } from "../settings/settings.ts";
import { sharedVariables } from "../settings/shared.ts";

const told = (row: (typeof settingRows)[number]): string =>
  `  --${row.flag} (${row.variable}, default ${row.default || "none"})\n      ${row.help}`;

/** Of a machine that lends itself, most settings are somebody else's. */
export function workerHelpText(): string {
  const own: readonly string[] = ["state", "rpc-server", "install-engine", "stop-grace"];
  return `Usage: model-gateway worker [--host 127.0.0.1] [--port 50052] [--threads N]

Lends this machine to a gateway elsewhere: runs a ggml-rpc-server and starts it
again when it dies. Ctrl+C ends it.

  --host ADDRESS   the IPv4 address of this machine on which it is reached;
                   127.0.0.1: from here only, 0.0.0.0: on every address
  --port PORT      50052
  --threads N      as many as the engine thinks fit

Whoever reaches the port can use the worker and read along: keep it in a network
that you trust.

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
  plan             what would be done: exit 0 nothing, 2 changes, 1 error, also
                   where gateway.yaml is not in force
  status           what is true: exit 0 ready, 2 not ready, 1 error, likewise
  models           what lies in the model cache: sizes, last use, what is stale;
                   looks by itself where no gateway runs, as do plan and gc
  pull ID          have the running gateway pull a model, and watch it;
                   Ctrl+C leaves it, and the pull goes on.
                   Exit 0 done, 130 left, 1 error
  rm ID [--yes]    delete a model's files: exit 0 done, 2 not confirmed, 1 error
  gc [--yes]       what of the cache serves nobody, and with --yes delete it:
                   exit 0 nothing left, 2 something would go, 1 error
  validate FILE    check a gateway.yaml: exit 0 valid, 1 not
  engine install [llama|whisper|sherpa]
                   put an engine into the state folder
  worker [--host 127.0.0.1] [--port 50052] [--threads N]
                   lend this machine to a gateway: run a ggml-rpc-server and
                   start it again when it dies
  key create NAME [--scope chat] [--expires 30d|2027-01-01]
                   make a license key and print it, this once; a running
                   gateway takes it at once. Scope chat: list models, ask
                   them and read the status, nothing else
  key list         names, scopes and times of the keys
  key revoke NAME  the key no longer counts, from the next request on
  version, help

  --json           plan, status, models, gc, rm and key as JSON
  --force          pull, rm and gc change the gateway on --port too where it is not
                   the one of the state folder

Settings:
${settings.join("\n")}

Settings shared with other programs:
${shared.join("\n")}`;
}
