// Which files of a repository a tag means: all shards, and the projector if there is one. The rules are in ../README.md. Pure.
import { GatewayError } from "../../core/errors.ts";
import { endsInWord, inferTag, routerTag, shortTagIn } from "../../core/ids.ts";
import { chooseProjector, compare, type FileGroup, groupFiles, missingShards } from "./model-files.ts";

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

/** The name of a file's blob: its sha256, or git's sha1 where the hub has no other. */
export function blobName(file: HubFile): string {
  return file.sha256 ?? file.oid;
}

export interface Selection {
  /** The model's files, shards in order. */
  readonly model: readonly HubFile[];
  readonly projector: HubFile | null;
}

type Candidate = FileGroup<HubFile>;

/**
 * The files that `tag` means in `repo`.
 * Throws `quant_not_found` (listing the tags there are, or the missing shards) and `quant_ambiguous` (listing the files).
 */
export function selectFiles(repo: string, tag: string, tree: readonly HubFile[]): Selection {
  const candidates = groupFiles(tree);
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
  return tagList(groupFiles(tree));
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

/** Those whose words are all in the name of every other one too: the others have more (`UD`, `imat`, `v2`). */
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

function notFound(repo: string, tag: string, candidates: readonly Candidate[]): GatewayError {
  const tags = tagList(candidates);
  const there = tags.length > 0 ? `It has: ${shortList(tags)}.` : "It has no GGUF file at all.";
  return new GatewayError("quant_not_found", `${repo} has nothing called ${tag}. ${there}`);
}

function shortList(names: readonly string[]): string {
  return names.slice(0, mostNamed).join(", ") + (names.length > mostNamed ? ", …" : "");
}

/** A longer message is not readable. */
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

function depthOf(folder: string): number {
  return folder === "" ? 0 : folder.split("/").length;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.gguf$/i, "");
}
