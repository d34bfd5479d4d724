// Owns reading apt's source lists: which mirror of Debian this system already uses, and which keyring it is signed by.
// Pure: text in, mirrors out. The mirror's name is the system's own, never one of ours.

export interface DebianMirror {
  readonly uri: string;
  /** As in the list: paths of keyrings, or empty when the list names none (or holds the key itself). */
  readonly signedBy: readonly string[];
}

interface SourceEntry {
  readonly types: readonly string[];
  readonly uris: readonly string[];
  readonly suites: readonly string[];
  readonly components: readonly string[];
  readonly signedBy: readonly string[];
}

const debianSuites = new Set(
  "buster bullseye bookworm trixie forky duke sid oldoldstable oldstable stable testing unstable".split(" "),
);

/** Mirrors of Debian's main archive, in the lists' order, each once. */
export function debianMirrors(files: readonly { readonly name: string; readonly text: string }[]): DebianMirror[] {
  const mirrors = new Map<string, DebianMirror>();
  for (const file of files) {
    const entries = file.name.endsWith(".sources") ? parseDeb822(file.text) : parseOneLine(file.text);
    for (const entry of entries.filter(isDebianMain)) {
      for (const uri of entry.uris) {
        if (!uri.startsWith("cdrom:") && !mirrors.has(uri)) mirrors.set(uri, { uri, signedBy: entry.signedBy });
      }
    }
  }
  return [...mirrors.values()];
}

function isDebianMain(entry: SourceEntry): boolean {
  if (!entry.types.includes("deb") || !entry.components.includes("main")) return false;
  // The security archive ("bookworm-security", once "buster/updates") is another tree, without forky's packages.
  return entry.suites.some((suite) => debianSuites.has(suite.replace(/-(updates|backports)$/, "")));
}

/** `Types: deb` … stanzas; continuation lines start with a space, `#` lines are comments. */
function parseDeb822(text: string): SourceEntry[] {
  const entries: SourceEntry[] = [];
  for (const stanza of text.split(/\n[ \t]*\r?\n/)) {
    const fields = new Map<string, string>();
    let field = "";
    for (const line of stanza.split(/\r?\n/)) {
      if (line.startsWith("#")) continue;
      const start = /^([A-Za-z0-9-]+):(.*)$/.exec(line);
      if (start !== null) {
        field = (start[1] ?? "").toLowerCase();
        fields.set(field, start[2] ?? "");
      } else if (field !== "") {
        fields.set(field, `${fields.get(field) ?? ""} ${line.trim()}`);
      }
    }
    if (/^\s*(no|false|0)\s*$/i.test(fields.get("enabled") ?? "yes")) continue;
    entries.push({
      types: words(fields.get("types")),
      uris: words(fields.get("uris")),
      suites: words(fields.get("suites")),
      components: words(fields.get("components")),
      signedBy: keyrings(fields.get("signed-by")),
    });
  }
  return entries;
}

/** `deb [option=value …] uri suite component…` */
function parseOneLine(text: string): SourceEntry[] {
  const entries: SourceEntry[] = [];
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)((?:\s+[^#\s]\S*)*)/.exec(line);
    if (match === null) continue;
    const option = words(match[2]).find((word) => word.toLowerCase().startsWith("signed-by="));
    entries.push({
      types: [match[1] ?? ""],
      uris: [match[3] ?? ""],
      suites: [match[4] ?? ""],
      components: words(match[5]),
      signedBy: keyrings(option?.slice("signed-by=".length)),
    });
  }
  return entries;
}

function words(value: string | undefined): string[] {
  return (value ?? "").split(/\s+/).filter((word) => word !== "");
}

/** Only paths: a key written out in the list itself cannot be passed on in one line, the archive's own keyring has it too. */
function keyrings(value: string | undefined): string[] {
  if (value?.includes("BEGIN PGP") === true) return [];
  return (value ?? "").split(/[\s,]+/).filter((word) => word.startsWith("/"));
}
