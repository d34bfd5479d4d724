// Which files of a repository a tag means: all shards, and the projector where there is one. Pure.
// Rules, in this order; the first that matches anything decides:
//   1. the tag is a file's name, with or without `.gguf` and shard suffix   2. the interface's tag of the file
//   3. the router's tag of the file                                         4. the file's name ends in `-<tag>`
// Where several files match, the plain name wins (`foo-Q4_K_M` before `foo-UD-Q4_K_M`), else the tag is ambiguous.
import { GatewayError } from "../../core/errors.ts";
import {
  endsInWord,
  fileStem,
  inferTag,
  isAuxiliary,
  isProjector,
  routerTag,
  shardOf,
  shortTagIn,
} from "../../core/ids.ts";

/** A file that the hub lists. */
export interface HubFile {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** git's object id: the sha1 of the content for a small file, of a pointer for one in LFS. */
  readonly oid: string;
  /** Lower-case hex; present for files in LFS, as all large ones are. */
  readonly sha256?: string;
}

/** The name of a file's blob: its sha256, or git's sha1 where the hub knows no other. */
export function blobName(file: HubFile): string {
  return file.sha256 ?? file.oid;
}

export interface Selection {
  /** The model's files, shards in order. */
  readonly model: readonly HubFile[];
  readonly projector: HubFile | null;
}

/** One model in a repository: a file, or all shards of one. */
interface Candidate {
  readonly folder: string;
  readonly stem: string;
  readonly files: readonly HubFile[];
  /** Shards that the names promise; 0 for a model in one file. */
  readonly shards: number;
}

/**
 * The files that `tag` means in `repo`.
 * Throws `quant_not_found` (listing the tags there are, or the missing shards) and `quant_ambiguous` (listing the files).
 */
export function selectFiles(repo: string, tag: string, tree: readonly HubFile[]): Selection {
  const candidates = groupModels(tree);
  const wanted = tag.replace(/\.gguf$/i, "");
  const matches = firstMatches(candidates, wanted);
  if (matches.length === 0) throw notFound(repo, tag, candidates);

  const whole = matches.filter((candidate) => missingShards(candidate).length === 0);
  const [first] = matches;
  if (whole.length === 0 && first) {
    throw new GatewayError(
      "quant_not_found",
      `${repo}:${tag} is not whole on the hub: ${describe(first)} lacks shard ${shortList(missingShards(first).map(String))} of ${first.shards}.`,
    );
  }
  const chosen = choose(repo, wanted, whole);
  if (!chosen) {
    const names = shortList(whole.map(describe).sort(compare));
    throw new GatewayError("quant_ambiguous", `${repo}:${tag} may mean several files: ${names}.`);
  }
  return { model: chosen.files, projector: chooseProjector(tree, chosen.folder) };
}

/** The tags that a repository's models can be asked for by, sorted. */
export function tagsOf(tree: readonly HubFile[]): readonly string[] {
  return tagList(groupModels(tree));
}

function groupModels(tree: readonly HubFile[]): Candidate[] {
  const groups = new Map<string, HubFile[]>();
  for (const file of tree) {
    if (!/\.gguf$/i.test(file.path) || isAuxiliary(file.path) || isProjector(file.path)) continue;
    const key = `${folderOf(file.path)}/${fileStem(file.path)}/${shardOf(file.path)?.count ?? 0}`;
    const group = groups.get(key);
    if (group) group.push(file);
    else groups.set(key, [file]);
  }
  return [...groups.values()].map((files) => {
    const sorted = files.toSorted((a, b) => compare(a.path, b.path));
    const path = sorted[0]?.path ?? "";
    return { folder: folderOf(path), stem: fileStem(path), files: sorted, shards: shardOf(path)?.count ?? 0 };
  });
}

function firstMatches(candidates: readonly Candidate[], wanted: string): Candidate[] {
  const folded = wanted.toLowerCase();
  const names = (candidate: Candidate) => [candidate.stem, ...candidate.files.map((file) => baseName(file.path))];
  const rules: readonly ((candidate: Candidate) => boolean)[] = [
    (candidate) => names(candidate).includes(wanted),
    (candidate) => names(candidate).some((name) => name.toLowerCase() === folded),
    (candidate) => inferTag(candidate.stem).toLowerCase() === folded,
    (candidate) => routerTag(`${candidate.stem}.gguf`)?.toLowerCase() === folded,
    (candidate) => endsInWord(candidate.stem, wanted),
  ];
  for (const rule of rules) {
    const hits = candidates.filter(rule);
    if (hits.length > 0) return hits;
  }
  return [];
}

function choose(repo: string, wanted: string, candidates: readonly Candidate[]): Candidate | undefined {
  const plain = plainNamed(repo, wanted, candidates) ?? leastWords(wanted, candidates) ?? candidates;
  // One name several times: a repository may hold a model both whole and in shards, or a copy in a subfolder.
  if (new Set(plain.map((candidate) => candidate.stem.toLowerCase())).size > 1) return undefined;
  const ranked = plain.toSorted((a, b) => a.shards - b.shards || depthOf(a.folder) - depthOf(b.folder));
  const [best, next] = ranked;
  const tied = best && next && best.shards === next.shards && depthOf(best.folder) === depthOf(next.folder);
  return tied ? undefined : best;
}

/** Those called exactly `<repository name without -GGUF>-<tag>`. */
function plainNamed(repo: string, wanted: string, candidates: readonly Candidate[]): readonly Candidate[] | undefined {
  const name = repo.slice(repo.indexOf("/") + 1).replace(/[-._]gguf$/i, "");
  const hits = candidates.filter(({ stem }) => {
    return endsInWord(stem, wanted) && stem.slice(0, -wanted.length - 1).toLowerCase() === name.toLowerCase();
  });
  return hits.length > 0 ? hits : undefined;
}

/** Those whose words all stand in the name of every other one too: the others say something more (`UD`, `imat`, `v2`). */
function leastWords(wanted: string, candidates: readonly Candidate[]): readonly Candidate[] | undefined {
  const named = candidates.map(({ stem }) => wordsOf(stem, wanted));
  const common = named.reduce((words, others) => words.filter((word) => others.includes(word)));
  const hits = candidates.filter((_, at) => named[at]?.every((word) => common.includes(word)) ?? false);
  return hits.length > 0 ? hits : undefined;
}

function wordsOf(stem: string, tag: string): readonly string[] {
  return stem
    .toLowerCase()
    .replace(tag.toLowerCase(), "")
    .split(/[-._ ]+/)
    .filter((word) => word !== "");
}

/** Beside the model or above it first, then F16, then BF16, then the first by name. */
function chooseProjector(tree: readonly HubFile[], folder: string): HubFile | null {
  const near = (file: HubFile) => {
    const own = folderOf(file.path);
    return own === "" || folder === own || folder.startsWith(`${own}/`) ? 0 : 1;
  };
  const precision = (file: HubFile) => {
    const stem = fileStem(file.path);
    if (/(?:^|[^a-z0-9])(?:f|fp)16(?![a-z0-9])/i.test(stem)) return 0;
    return /(?:^|[^a-z0-9])bf16(?![a-z0-9])/i.test(stem) ? 1 : 2;
  };
  const ranked = tree
    .filter((file) => isProjector(file.path))
    .toSorted((a, b) => near(a) - near(b) || precision(a) - precision(b) || compare(a.path, b.path));
  return ranked[0] ?? null;
}

function missingShards(candidate: Candidate): number[] {
  const there = new Set(candidate.files.map((file) => shardOf(file.path)?.index));
  const missing: number[] = [];
  for (let index = 1; index <= candidate.shards; index++) if (!there.has(index)) missing.push(index);
  return missing;
}

function notFound(repo: string, tag: string, candidates: readonly Candidate[]): GatewayError {
  const tags = tagList(candidates);
  const there = tags.length > 0 ? `It has: ${shortList(tags)}.` : "It has no GGUF file at all.";
  return new GatewayError("quant_not_found", `${repo} has nothing called ${tag}. ${there}`);
}

function shortList(names: readonly string[]): string {
  return names.slice(0, mostNamed).join(", ") + (names.length > mostNamed ? ", …" : "");
}

/** More in one message nobody reads. */
const mostNamed = 40;

function tagList(candidates: readonly Candidate[]): string[] {
  const tags = candidates.map((candidate) => {
    return shortTagIn(candidate.stem) ?? routerTag(`${candidate.stem}.gguf`) ?? candidate.stem;
  });
  return [...new Set(tags)].sort(compare);
}

function describe(candidate: Candidate): string {
  const name = candidate.folder === "" ? candidate.stem : `${candidate.folder}/${candidate.stem}`;
  return candidate.shards > 0 ? `${name} (${candidate.shards} shards)` : name;
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function depthOf(folder: string): number {
  return folder === "" ? 0 : folder.split("/").length;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.gguf$/i, "");
}

/** By code unit, so the same on every machine. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
