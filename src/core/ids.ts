// Model identifiers: the interface's own tag rule, the router's rule, and how a requested name finds its model. Pure.

/** The quant tags that the interface infers from a file name; anything else is tagged by the file's own name. */
const shortTags = ["Q4_K_M", "Q8_0", "Q5_K_M", "Q4_0"] as const;

export interface ModelId {
  readonly owner: string;
  readonly name: string;
  readonly tag: string;
}

const repoPattern = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;
const tagPattern = /^[\w.+@ -]+$/;
const shardPattern = /-(\d{5})-of-(\d{5})$/;

/** Its folder in the cache, `models--owner--name`, has the 255 bytes that file systems allow. */
const longestRepo = 246;
/** With a shard's suffix and `.gguf` it is a file's name. */
const longestTag = 235;
export const idForm = `OWNER/NAME:TAG (at most ${longestRepo} and ${longestTag} characters)`;

/** Whether a revision is a commit, whole, as the hub writes it. */
export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/.test(revision);
}

/** `owner/name:tag` taken apart, or null where the text is no identifier (`..` and empty parts are none). */
export function parseModelId(text: string): ModelId | null {
  const colon = text.indexOf(":");
  if (colon < 0) return null;
  const repo = text.slice(0, colon);
  const tag = text.slice(colon + 1);
  if (!isRepo(repo) || !tagPattern.test(tag) || tag.length > longestTag || /^[. ]|[. ]$/.test(tag)) return null;
  const slash = repo.indexOf("/");
  return { owner: repo.slice(0, slash), name: repo.slice(slash + 1), tag };
}

export function isRepo(text: string): boolean {
  return repoPattern.test(text) && text.length <= longestRepo && !text.includes("..") && !text.includes("--");
}

export function repoOf(id: ModelId): string {
  return `${id.owner}/${id.name}`;
}

/** A file's name without folders, the `.gguf` ending and a `-0000N-of-0000M` shard suffix. */
export function fileStem(path: string): string {
  const file = path.slice(path.lastIndexOf("/") + 1);
  return file.replace(/\.gguf$/i, "").replace(shardPattern, "");
}

/** Which shard of how many a file is, by its name; null for a file that is no shard. */
export function shardOf(path: string): { readonly index: number; readonly count: number } | null {
  const match = shardPattern.exec(path.replace(/\.gguf$/i, ""));
  return match ? { index: Number(match[1]), count: Number(match[2]) } : null;
}

/** The interface's tag of a cached file: a short one where the name has it as a word of its own, else the name without `.gguf`. */
export function inferTag(path: string): string {
  const stem = fileStem(path);
  return shortTagIn(stem) ?? stem;
}

/** The short quant tag in a file's stem, or null. */
export function shortTagIn(stem: string): string | null {
  const upper = stem.toUpperCase();
  for (const tag of shortTags) {
    if (new RegExp(`(?:^|[^A-Z0-9])${tag}(?![A-Z0-9]|_\\d)`).test(upper)) return tag;
  }
  return null;
}

/** The router's own tag: the last `-` or `.` separated word of the stem, upper case; null where it lists none. Seen on build 11669. */
export function routerTag(path: string): string | null {
  const file = path.slice(path.lastIndexOf("/") + 1);
  if (!file.endsWith(".gguf") || isAuxiliary(file)) return null;
  const shard = shardOf(file);
  if (shard && shard.index !== 1) return null;
  const word = /[-.]([A-Za-z0-9_]+)$/.exec(fileStem(file))?.[1];
  return word === undefined ? null : word.toUpperCase();
}

/** The router puts a section's tag through its own rule (`foo-UD-Q4_K_XL` is `Q4_K_XL`): two may be one model. Seen on build 11669. */
export function registeredId(section: string): string {
  const colon = section.lastIndexOf(":");
  if (colon < 0) return section;
  const tag = section.slice(colon + 1);
  return section.slice(0, colon + 1) + (/[-.]([A-Za-z0-9_]+)$/.exec(tag)?.[1] ?? tag).toUpperCase();
}

/** Files that accompany a model and are none: projectors, draft heads, importance matrices. */
export function isAuxiliary(path: string): boolean {
  const file = path.slice(path.lastIndexOf("/") + 1);
  return /mmproj|mtp-|eagle3-|dflash-|dspark-/.test(file) || /^imatrix\.gguf$|[-.]imatrix\.gguf$/i.test(file);
}

/** A projector of a vision model, by its name. */
export function isProjector(path: string): boolean {
  const file = path.slice(path.lastIndexOf("/") + 1);
  return /\.gguf$/i.test(file) && /mmproj/i.test(file);
}

/** A model name as a client sends it, without a trailing `.gguf` or `:latest`. */
export function normaliseName(name: string): string {
  return name
    .trim()
    .replace(/:latest$/, "")
    .replace(/\.gguf$/i, "");
}

/** As names are looked up: `x:latest`, `x.gguf` and `X` are one. */
export function foldName(name: string): string {
  return normaliseName(name).toLowerCase();
}

/** A model together with the other names it answers to. */
export interface NamedModel {
  readonly id: string;
  readonly aliases: readonly string[];
}

/** A model with the id under which the router has its file. */
export interface RoutedModel extends NamedModel {
  readonly upstreamId: string;
}

export type NameMatch =
  | { readonly kind: "found"; readonly id: string }
  | { readonly kind: "missing"; readonly nearest: readonly string[] };

/** What a client's name means: an id exactly, ignoring case, a short name that only one has, the end of a file's name. Ids go before aliases. */
export function matchName(requested: string, models: readonly NamedModel[]): NameMatch {
  const name = normaliseName(requested);
  const aliases = (model: NamedModel): readonly string[] => model.aliases;
  for (const isNamed of [...byIdAndOthers(aliases), shortNames]) {
    const hits = models.filter((model) => isNamed(model, name));
    const [only] = hits;
    if (only && hits.length === 1) return { kind: "found", id: only.id };
  }
  const ending = plainestEndingIn(models, name);
  return ending ? { kind: "found", id: ending.id } : { kind: "missing", nearest: nearestIds(name, models) };
}

/** For what cannot be undone: an id or another name of its very file. A near name means none: repeated, it would mean the next model. */
export function matchWholeName(requested: string, models: readonly RoutedModel[]): NameMatch {
  for (const name of [requested, normaliseName(requested)]) {
    for (const isNamed of byIdAndOthers<RoutedModel>((model) => [model.upstreamId, ...model.aliases])) {
      const hits = models.filter((model) => isNamed(model, name));
      const [only] = hits;
      if (only && hits.length === 1) return { kind: "found", id: only.id };
      if (only) return { kind: "missing", nearest: hits.slice(0, 3).map(({ id }) => id) };
    }
  }
  return { kind: "missing", nearest: nearestIds(requested, models) };
}

type IsNamed<T> = (model: T, name: string) => boolean;

/** By the id, then by its other names; both exactly first, then ignoring case. */
function byIdAndOthers<T extends NamedModel>(others: (model: T) => readonly string[]): readonly IsNamed<T>[] {
  return [(text: string) => text, (text: string) => text.toLowerCase()].flatMap((fold): IsNamed<T>[] => [
    (model, name) => fold(model.id) === fold(name),
    (model, name) => others(model).some((other) => fold(other) === fold(name)),
  ]);
}

/** Whether a name ends in a word, set off from what is before it, ignoring case. */
export function endsInWord(name: string, word: string): boolean {
  return /[-._]/.test(name.at(-word.length - 1) ?? "") && name.toLowerCase().endsWith(word.toLowerCase());
}

/** The plainest name that ends in the id's tag as a word: what a pull selects, so that it is found under the id it was pulled by. */
export function plainestEndingIn<T extends NamedModel>(models: readonly T[], id: string): T | undefined {
  return allEndingIn(models, id)[0];
}

/** All of them, the plainest first. */
export function allEndingIn<T extends NamedModel>(models: readonly T[], id: string): T[] {
  const colon = id.indexOf(":");
  if (colon < 0 || colon === id.length - 1) return [];
  const repo = id.slice(0, colon + 1).toLowerCase();
  const tag = id.slice(colon + 1);
  const isMeant = (name: string): boolean => name.toLowerCase().startsWith(repo) && endsInWord(name, tag);
  return models
    .filter((model) => [model.id, ...model.aliases].some(isMeant))
    .toSorted((a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : 1));
}

/** `owner/name`, `name:tag` and `name`, ignoring case. */
function shortNames(model: NamedModel, name: string): boolean {
  const folded = name.toLowerCase();
  return [model.id, ...model.aliases].some((full) => {
    const text = full.toLowerCase();
    const colon = text.lastIndexOf(":");
    const slash = text.indexOf("/");
    return [text.slice(0, colon), text.slice(slash + 1), text.slice(slash + 1, colon)].includes(folded);
  });
}

/** Up to three ids that a mistyped name may have meant, the nearest first. */
export function nearestIds(name: string, models: readonly NamedModel[]): string[] {
  const wanted = bigrams(name.toLowerCase());
  return models
    .map((model) => ({ id: model.id, score: overlap(wanted, bigrams(model.id.toLowerCase())) }))
    .filter((entry) => entry.score > 0.2)
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .slice(0, 3)
    .map((entry) => entry.id);
}

function bigrams(text: string): ReadonlySet<string> {
  const pairs = new Set<string>();
  for (let i = 0; i + 1 < text.length; i++) pairs.add(text.slice(i, i + 2));
  return pairs;
}

function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size + b.size === 0) return 0;
  let shared = 0;
  for (const pair of a) if (b.has(pair)) shared++;
  return (2 * shared) / (a.size + b.size);
}
