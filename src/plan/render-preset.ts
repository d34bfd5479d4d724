// The text that router.preset.ini should have: our sections and keys in place, everything else unchanged. Pure.
import { parseModelId, registeredId } from "../core/ids.ts";
import {
  isMarker,
  isReadable,
  markedEntries,
  markedKeys,
  markerFor,
  type PresetFile,
  type PresetSection,
  readEntry,
  sectionsInForce,
} from "./preset-file.ts";

/** A section of ours: the keys that it must have. */
export interface WantedSection {
  readonly name: string;
  readonly values: ReadonlyMap<string, string>;
  /** Those of them that yield to keys of the file's owner. */
  readonly defaults?: ReadonlySet<string>;
}

const introduction = [
  "; The router reads its models' settings here. Model Gateway writes the keys that a section's",
  '; "model-gateway sets" comment names; your own keys, sections and comments stay.',
];

interface Draft {
  readonly name: string | null;
  readonly lines: readonly string[];
}

/** A line that the router cannot parse ends it, so it becomes a comment; a section without a source can hang, so each names one. */
export function renderPreset(
  current: PresetFile,
  wanted: readonly WantedSection[],
  knownKeys: ReadonlySet<string> | null,
  /** Sections of models that could not be observed: what they should have is unknown. */
  isUnknown: (name: string) => boolean = () => false,
): string {
  const inForce = sectionsInForce(current);
  // Of several with one name the first.
  const byName = new Map(wanted.toReversed().map((entry) => [registeredId(entry.name), entry]));
  const drafts = current.sections.map((section, index): Draft | null => {
    if (section.name === null) return index === 0 ? preamble(section) : commentOut(section, null);
    const name = registeredId(section.name);
    if (inForce.get(name) !== section) return commentOut(section, "replaced by the later section of the same name");
    const ours = isUnknown(section.name) ? asItStands(section, knownKeys) : byName.get(name);
    return mergeSection(section, ours, knownKeys);
  });
  const missing = wanted.filter((entry) => !inForce.has(registeredId(entry.name)));
  const added = missing.map((entry): Draft => ({ name: entry.name, lines: ourLines(entry.values) }));
  return format([...drafts.filter((draft) => draft !== null), ...added]);
}

/** What a section has of ours already. */
function asItStands(section: PresetSection, knownKeys: ReadonlySet<string> | null): WantedSection | undefined {
  const entries = markedEntries(section).filter(([key]) => knownKeys?.has(key) ?? true);
  return entries.length > 0 ? { name: section.name ?? "", values: new Map(entries) } : undefined;
}

/** Keys before the first section would become a model called "default". */
function preamble(section: PresetSection): Draft {
  const lines = section.lines.map((line) => {
    const entry = readEntry(line);
    return entry && entry.key !== "version" ? commented(line) : readable(line, null);
  });
  return { name: null, lines: lines.some((line) => line.trim() !== "") ? lines : introduction };
}

function mergeSection(
  section: PresetSection,
  ours: WantedSection | undefined,
  knownKeys: ReadonlySet<string> | null,
): Draft | null {
  const marked = markedKeys(section);
  const values = new Map(ours?.values);
  // Of a section that is not ours any more only what people wrote remains.
  const foreign = section.lines
    .filter((line) => !isMarker(line) && !marked.has(readEntry(line)?.key ?? ""))
    .map((line) => readable(line, knownKeys));
  const own = new Set(foreign.flatMap((line) => readEntry(line)?.key ?? []));
  const hasSource = ["hf-repo", "model", "model-url"].some((key) => own.has(key));
  if (!ours && own.size === 0 && marked.size > 0 && foreign.every((line) => line.trim() === "")) return null;
  if (section.name !== "*" && !hasSource && !values.has("hf-repo") && !values.has("model")) {
    if (own.size === 0 && values.size === 0) return { name: null, lines: [`; [${section.name}]`, ...foreign] };
    if (!parseModelId(section.name ?? "")) return commentOut(section, "a section needs hf-repo or model");
    values.set("hf-repo", section.name ?? "");
  }
  // A person's own source wins over ours: both together would make the router choose.
  if (hasSource) for (const key of ["hf-repo", "model", "mmproj"]) values.delete(key);
  for (const key of ours?.defaults ?? []) if (own.has(key)) values.delete(key);
  const kept = foreign.map((line) => (values.has(readEntry(line)?.key ?? "") ? commented(line) : line));
  return { name: section.name, lines: [...ourLines(values), ...kept] };
}

function ourLines(values: ReadonlyMap<string, string>): string[] {
  if (values.size === 0) return [];
  return [markerFor([...values.keys()]), ...[...values].map(([key, value]) => `${key} = ${value}`)];
}

function commentOut(section: PresetSection, why: string | null): Draft {
  // A marker would give the keys of the section above to the gateway.
  const lines = section.lines
    .filter((line) => !isMarker(line))
    .map((line) => (/^[ \t]*(?:[;#]|$)/.test(line) ? line : commented(line)));
  return { name: null, lines: [...(why === null ? [] : [`; ${why}:`, `; [${section.name}]`]), ...lines] };
}

function readable(line: string, knownKeys: ReadonlySet<string> | null): string {
  return isReadable(line, knownKeys) ? line : commented(line);
}

function commented(line: string): string {
  const comment = `; ${line.trim()}`;
  return isMarker(comment) ? `;${comment}` : comment;
}

function format(drafts: readonly Draft[]): string {
  const blocks: Draft[] = [];
  for (const draft of drafts) {
    const above = draft.name === null ? blocks.pop() : undefined;
    // What has no header will be read as part of the section above: it is laid out as such.
    blocks.push(above ? { name: above.name, lines: [...trimBlank(above.lines), "", ...draft.lines] } : draft);
  }
  const texts = blocks.map(({ name, lines }) =>
    [...(name === null ? [] : [`[${name}]`]), ...trimBlank(lines)].join("\n"),
  );
  return `${texts.filter((text) => text !== "").join("\n\n")}\n`;
}

function trimBlank(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.trim() !== "");
  const last = lines.findLastIndex((line) => line.trim() !== "");
  return first < 0 ? [] : lines.slice(first, last + 1);
}
