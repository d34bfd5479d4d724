// The text that router.preset.ini should have: our sections and keys in place, everything else as people wrote it. Pure.
import { parseModelId } from "../core/ids.ts";
import { isMarker, isReadable, markedKeys, markerFor, type PresetFile, type PresetSection, readEntry, sameSection } from "./preset-file.ts";

/** A section of ours: the keys that it must have. */
export interface WantedSection {
  readonly name: string;
  readonly values: ReadonlyMap<string, string>;
}

const introduction = [
  "; The router reads its models' settings here. Model Gateway writes the keys that a section's",
  '; "model-gateway sets" comment names; your own keys, sections and comments stay.',
];

interface Draft {
  readonly name: string | null;
  readonly lines: readonly string[];
}

/**
 * Rules, each from what the router does with the file: one that it cannot parse ends it, so unreadable lines become
 * comments; a section without a source, for a model that it does not find, hangs for ever, so every section names one.
 */
export function renderPreset(current: PresetFile, wanted: readonly WantedSection[], knownKeys: ReadonlySet<string> | null): string {
  const effective = current.sections.filter(
    (section, index) => section.name === null || !current.sections.slice(index + 1).some((later) => later.name !== null && sameSection(later.name, section.name ?? "")),
  );
  const drafts = current.sections.map((section): Draft | null => {
    if (section.name === null) return preamble(section);
    if (!effective.includes(section)) return commentOut(section, "replaced by the later section of the same name");
    const ours = wanted.find((entry) => sameSection(entry.name, section.name ?? ""));
    return mergeSection(section, ours, knownKeys);
  });
  const missing = wanted.filter((entry) => !effective.some((section) => section.name !== null && sameSection(section.name, entry.name)));
  const added = missing.map((entry): Draft => ({ name: entry.name, lines: ourLines(entry.values) }));
  return format([...drafts.filter((draft) => draft !== null), ...added]);
}

/** Keys before the first section would become a model called "default". */
function preamble(section: PresetSection): Draft {
  const lines = section.lines.map((line) => {
    const entry = readEntry(line);
    return (entry && entry.key !== "version") || !isReadable(line, null) ? `; ${line.trim()}` : line;
  });
  return { name: null, lines: lines.some((line) => line.trim() !== "") ? lines : introduction };
}

function mergeSection(section: PresetSection, ours: WantedSection | undefined, knownKeys: ReadonlySet<string> | null): Draft | null {
  const marked = markedKeys(section);
  const values = new Map(ours?.values);
  // Of a section that is not ours any more only what people wrote remains.
  const kept = section.lines
    .filter((line) => !isMarker(line))
    .map((line) => (isReadable(line, knownKeys) ? line : `; ${line.trim()}`))
    .filter((line) => {
      const key = readEntry(line)?.key;
      return key === undefined || !(marked.has(key) || values.has(key));
    });
  const own = new Set(kept.flatMap((line) => readEntry(line)?.key ?? []));
  if (!ours && own.size === 0 && marked.size > 0 && kept.every((line) => line.trim() === "")) return null;
  if (section.name !== "*" && !ours && !own.has("hf-repo") && !own.has("model") && !own.has("model-url")) {
    if (own.size === 0) return { name: null, lines: [`; [${section.name}]`, ...kept] };
    if (!parseModelId(section.name ?? "")) return commentOut(section, "a section needs hf-repo or model");
    values.set("hf-repo", section.name ?? "");
  }
  if (values.size === 0) return { name: section.name, lines: kept };
  // A person's own source wins over ours: both together would make the router choose.
  if (own.has("hf-repo") || own.has("model")) for (const key of ["hf-repo", "model", "mmproj"]) values.delete(key);
  return { name: section.name, lines: [...ourLines(values), ...kept] };
}

function ourLines(values: ReadonlyMap<string, string>): string[] {
  if (values.size === 0) return [];
  return [markerFor([...values.keys()]), ...[...values].map(([key, value]) => `${key} = ${value}`)];
}

function commentOut(section: PresetSection, why: string): Draft {
  return { name: null, lines: [`; ${why}:`, `; [${section.name}]`, ...section.lines.map((line) => (line.trim() === "" || /^[;#]/.test(line) ? line : `; ${line.trim()}`))] };
}

function format(drafts: readonly Draft[]): string {
  const blocks = drafts.map(({ name, lines }) => [...(name === null ? [] : [`[${name}]`]), ...trimBlank(lines)]);
  return `${blocks
    .filter((block) => block.length > 0)
    .map((block) => block.join("\n"))
    .join("\n\n")}\n`;
}

function trimBlank(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.trim() !== "");
  const last = lines.findLastIndex((line) => line.trim() !== "");
  return first < 0 ? [] : lines.slice(first, last + 1);
}
