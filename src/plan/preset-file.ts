// router.preset.ini as lines, so that keys, sections and comments of its owner survive. Pure.
// The `ini` package would lose comments on writing, and splits section names at dots ("Qwen2.5" …): it reads single entries.
import { parse } from "ini";
import { registeredId } from "../core/ids.ts";

/** A section: its header line and what follows it up to the next header. */
export interface PresetSection {
  /** Without brackets; null for the lines before the first section, and for those below a header that is none. */
  readonly name: string | null;
  readonly lines: readonly string[];
}

export interface PresetFile {
  readonly text: string;
  readonly sections: readonly PresetSection[];
}

const headerPattern = /^\[([^\]]+)\][ \t]*([;#].*)?$/s;
const entryPattern = /^([A-Za-z][A-Za-z0-9_.-]*)[ \t]*=/;
/** Names the keys of a section that the gateway may change and remove; without it they belong to the file's owner. */
const markerPattern = /^; model-gateway sets:(.*)$/;

export const emptyPreset: PresetFile = { text: "", sections: [{ name: null, lines: [] }] };

export function parsePreset(text: string): PresetFile {
  const sections: { name: string | null; lines: string[] }[] = [{ name: null, lines: [] }];
  // The router refuses the whole file for a byte order mark, and for bytes that are no UTF-8, read here as U+FFFD.
  const lines = text
    .replace(/^\uFEFF/, "")
    .replaceAll("\uFFFD", "?")
    .split(/\r\n|[\r\n]/);
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const header = headerPattern.exec(line);
    if (header) sections.push({ name: header[1] ?? "", lines: header[2] === undefined ? [] : [header[2]] });
    // Meant as a header: the keys below it must not fall to the section above.
    else if (/^\s*\[/.test(line)) sections.push({ name: null, lines: [line] });
    else sections.at(-1)?.lines.push(line);
  }
  return { text, sections };
}

export interface PresetEntry {
  readonly key: string;
  readonly value: string;
}

/** The entry on a line, as the router reads it: a `#` or `;` cuts the value. Null for comments and blank lines. */
export function readEntry(line: string): PresetEntry | null {
  if (!entryPattern.test(line)) return null;
  const [entry] = Object.entries(parse(line));
  return entry ? { key: canonicalKey(entry[0]), value: String(entry[1]) } : null;
}

const shortKeys: ReadonlyMap<string, string> = new Map([
  ["c", "ctx-size"],
  ["m", "model"],
  ["mu", "model-url"],
  ["mm", "mmproj"],
  ["hf", "hf-repo"],
  ["hfr", "hf-repo"],
  ["embedding", "embeddings"],
  ["rerank", "reranking"],
  ["ub", "ubatch-size"],
]);

/** The router takes `c`, `ctx-size` and `LLAMA_ARG_CTX_SIZE` for the same key. */
export function canonicalKey(key: string): string {
  const long = shortKeys.get(key);
  if (long !== undefined) return long;
  const fromEnvironment = /^LLAMA_ARG_([A-Z0-9_]+)$/.exec(key);
  return fromEnvironment?.[1] ? fromEnvironment[1].toLowerCase().replaceAll("_", "-") : key;
}

/** Whether the router can read a line at all: one that it cannot, or a key that it does not know, ends the router. */
export function isReadable(line: string, knownKeys: ReadonlySet<string> | null): boolean {
  if (/^[ \t]*(?:[;#]|$)/.test(line)) return true;
  const key = entryPattern.exec(line)?.[1];
  return key !== undefined && (knownKeys === null || knownKeys.has(key));
}

export function markedKeys(section: PresetSection): ReadonlySet<string> {
  const keys = section.lines.flatMap((line) => markerPattern.exec(line)?.[1]?.trim().split(/\s+/) ?? []);
  return new Set(keys.filter((key) => key !== ""));
}

/** The gateway's own entries of a section, as they stand. */
export function markedEntries(section: PresetSection): readonly (readonly [key: string, value: string])[] {
  const marked = markedKeys(section);
  return section.lines.flatMap((line) => {
    const key = readEntry(line)?.key;
    return key !== undefined && marked.has(key) ? [[key, line.slice(line.indexOf("=") + 1).trim()] as const] : [];
  });
}

/** The gateway's own entries of a model's section. */
export function markedIn(file: PresetFile, name: string): ReadonlyMap<string, string> {
  const section = sectionsInForce(file).get(registeredId(name));
  return new Map(section ? markedEntries(section) : []);
}

export function isMarker(line: string): boolean {
  return markerPattern.test(line);
}

export function markerFor(keys: readonly string[]): string {
  return `; model-gateway sets: ${keys.join(" ")}`;
}

/** What was read of a file and of a section. A plan asks for each model: 500 with a context size each took 250 ms. */
const indexes = new WeakMap<PresetFile, ReadonlyMap<string, PresetSection>>();
const read = new WeakMap<PresetSection, ReadonlyMap<string, string>>();

/** The sections that the router uses, by `registeredId`: of several with one name the last replaces the others wholly. */
export function sectionsInForce(file: PresetFile): ReadonlyMap<string, PresetSection> {
  const known = indexes.get(file);
  if (known) return known;
  const named = file.sections.flatMap((section) => (section.name === null ? [] : [[section.name, section] as const]));
  const index = new Map(named.map(([name, section]) => [registeredId(name), section]));
  indexes.set(file, index);
  return index;
}

/** Of a model's own section; none where it has no section. */
export function ownValues(file: PresetFile, name: string): ReadonlyMap<string, string> {
  const section = sectionsInForce(file).get(registeredId(name));
  if (!section) return new Map();
  const known = read.get(section);
  if (known) return known;
  const entries = section.lines.map(readEntry).filter((entry) => entry !== null);
  const values = new Map(entries.map(({ key, value }) => [key, value]));
  read.set(section, values);
  return values;
}

/** Whether a model's own section names its files. */
export function hasSource(file: PresetFile, name: string): boolean {
  const values = ownValues(file, name);
  return ["hf-repo", "model", "model-url"].some((key) => values.has(key));
}

/** What the router would use for a model: `[*]` with the model's own section over it. */
export function effectiveValues(file: PresetFile, name: string): ReadonlyMap<string, string> {
  return new Map([...ownValues(file, "*"), ...ownValues(file, name)]);
}

/** Whether a model's own section sets its context size. */
export function hasOwnCtxSize(file: PresetFile, name: string): boolean {
  return ownValues(file, name).has("ctx-size");
}

/** The context size in force for a model by the preset: its own, else `[*]`'s; null where the router decides. */
export function presetCtxSize(file: PresetFile, name: string): number | null {
  return ctxSizeIn(effectiveValues(file, name));
}

export function ctxSizeIn(values: ReadonlyMap<string, string>): number | null {
  const value = Number(values.get("ctx-size"));
  return Number.isInteger(value) && value > 0 ? value : null;
}
