// The help text, from the same table that the settings are read by.
import { settingRows, sharedVariables } from "../settings-table.ts";

export function helpText(): string {
  const settings = settingRows.map(
    (row) => `  --${row.flag} (${row.variable}, default ${row.fallback || "none"})\n      ${row.meaning}`,
  );
  const shared = sharedVariables.map((row) => `  ${row.variable} (default ${row.fallback})\n      ${row.meaning}`);
  return `Usage: model-gateway [COMMAND] [SETTINGS]

Commands:
  serve            run the gateway (the default)
  plan             what would be done: exit 0 nothing, 2 changes, 1 error
  status           what is true: exit 0 ready, 2 not ready, 1 error
  validate FILE    check a gateway.yaml: exit 0 valid, 1 not
  engine install [llama|whisper|sherpa]
                   put an engine into the state folder
  key create NAME [--expires 30d|2027-01-01]
                   make a license key and print it, this once; a running
                   gateway takes it at once
  key list         names and times of the keys
  key revoke NAME  the key no longer counts, from the next request on
  version, help

  --json           plan, status and key as JSON

Settings:
${settings.join("\n")}

Settings shared with other programs:
${shared.join("\n")}`;
}
