// Which preset keys belong to the gateway or the router, so that no document can set them. Pure.

/**
 * Options that the router owns (it drops or overwrites them), that name another model, or that reach outside the model:
 * none may come from a document. Every spelling that llama-server accepts counts.
 */
const refused: ReadonlyMap<string, string> = new Map([
  ...["c", "ctx-size"].map((key): [string, string] => [key, "use ctxSize"]),
  ...[
    "m",
    "model",
    "mu",
    "model-url",
    "mm",
    "mmproj",
    "mmu",
    "mmproj-url",
    "hf",
    "hfr",
    "hf-repo",
    "hff",
    "hf-file",
    "hft",
    "hf-token",
  ].map((key): [string, string] => [key, "the model's id or `source` names its files"]),
  ...["rpc"].map((key): [string, string] => [key, "use rpc.workers"]),
  ...[
    "a",
    "alias",
    "host",
    "port",
    "reuse-port",
    "api-key",
    "api-key-file",
    "path",
    "api-prefix",
    "ssl-key-file",
    "ssl-cert-file",
  ].map((key): [string, string] => [key, "the router owns it"]),
  ...[
    "models-dir",
    "models-preset",
    "models-max",
    "models-autoload",
    "no-models-autoload",
    "offline",
    "stop-timeout",
    "log-file",
    "load-on-startup",
  ].map((key): [string, string] => [key, "the gateway owns it"]),
  ...["help", "usage", "version", "license", "cache-list", "list-devices", "completion-bash"].map(
    (key): [string, string] => [key, "the model's process would print something and end"],
  ),
]);

/** Why a document may not set this preset key with this value; null where it may. */
export function presetProblem(key: string, value: string | number | boolean): string | null {
  const why = refused.get(key);
  if (why !== undefined) return `preset key ${key} cannot be set here: ${why}`;
  const text = String(value);
  // The router cuts a value at `#` or `;`, and trims it: what would not arrive whole is refused rather than changed.
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[#;\u0000-\u001f\u007f]/.test(text))
    return `preset value of ${key} has a character that the preset file cannot hold`;
  if (text !== text.trim() || text === "") return `preset value of ${key} is empty or has blanks at its ends`;
  return null;
}
