// Named files of a repository into the cache, as whole and verified as a model's: for voices and transcription models, which
// are no GGUF. Selects nothing: the caller names the paths.
import { GatewayError } from "../../core/errors.ts";
import { isCommit, type ModelId } from "../../core/ids.ts";
import { type CachedFile, partialPath, snapshotPath } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { type FetchOptions, fetchFiles, modelName } from "./fetch.ts";
import { holdPaths } from "./in-use.ts";
import { carryOver, linkSnapshot, readRef, writeRef } from "./link.ts";
import { settleModel } from "./partials.ts";
import { resolving } from "./progress.ts";

export interface FilesPull extends Omit<FetchOptions, "id" | "verify"> {
  readonly repo: string;
  /** What they are together: leftovers of an interrupted pull are known by `repo:name`. */
  readonly name: string;
  /** Branch, tag or commit; default `main`. */
  readonly revision?: string;
  /** In the repository. */
  readonly paths: readonly string[];
}

export interface PulledFiles {
  readonly commit: string;
  /** In the order of the paths. */
  readonly files: readonly (CachedFile & {
    /** In the cache's snapshot. */
    readonly place: string;
  })[];
  /** Bytes that came over the network. */
  readonly downloadedBytes: number;
}

/** Throws `hub_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function pullFiles({ repo, name, revision = "main", paths, ...rest }: FilesPull): Promise<PulledFiles> {
  const options: FetchOptions = { ...rest, id: idOf(repo, name) };
  const { client, cacheDir, gateway, signal, onProgress } = options;
  onProgress(resolving);
  const commit = await client.resolveRevision(repo, revision, signal);
  const tree = await client.listTree(repo, commit, signal);
  const files = paths.map((path) => requireFile(tree, repo, path));
  // Names come from outside: each is checked before anything is written.
  const places = files.map((file) => snapshotPath(cacheDir, repo, commit, file.path));
  // Nothing links them yet: a cleaning must see that they are wanted.
  const release = holdPaths(files.map((file) => partialPath(cacheDir, repo, blobName(file))));
  try {
    const { files: cached, downloadedBytes } = await fetchFiles(options, repo, commit, files);
    await linkSnapshot({ cacheDir, repo, commit, files: cached });
    if (!isCommit(revision)) {
      const before = await readRef(cacheDir, repo, revision);
      if (before !== undefined && before !== commit)
        await carryOver({ cacheDir, repo, from: before, to: commit, tree, signal });
      if (before !== commit) await writeRef(cacheDir, repo, revision, commit);
    }
    await settleModel({ cacheDir, repo, model: modelName(options), blobs: cached.map(({ blob }) => blob), gateway });
    return { commit, files: cached.map((file, index) => ({ ...file, place: places[index] ?? "" })), downloadedBytes };
  } finally {
    release();
  }
}

function idOf(repo: string, tag: string): ModelId {
  const slash = repo.indexOf("/");
  return { owner: repo.slice(0, slash), name: repo.slice(slash + 1), tag };
}

function requireFile(tree: readonly HubFile[], repo: string, path: string): HubFile {
  const file = tree.find((entry) => entry.path.normalize("NFC") === path.normalize("NFC"));
  if (file) return file;
  throw new GatewayError("hub_not_found", `${repo} has no file ${path}`);
}
