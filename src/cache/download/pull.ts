// A model, or named files, from the hub into the cache: resolves the revision and selects the files.
// Does not decide whether a model is wanted, and deletes no model.
import { GatewayError } from "../../core/errors.ts";
import { type ModelId, repoOf } from "../../core/ids.ts";
import { cancelled } from "../../hub/errors.ts";
import { snapshotPath } from "../layout/layout.ts";
import { type HubFile, selectFiles } from "../layout/select.ts";
import { bring, type FetchOptions, type PullResult } from "./fetch.ts";
import { resolving } from "./progress.ts";
import { createFill, listFiles, type Select, type Sources } from "./sources.ts";
import { defaultTuning, type TransferTuning } from "./transfer.ts";

export interface HubOptions extends FetchOptions, Sources {
  /** Branch, tag or commit; default `main`, the only one that the router lists. */
  readonly revision?: string;
  readonly tuning?: Partial<TransferTuning> & FetchOptions["tuning"];
}

export interface PullOptions extends HubOptions {
  readonly id: ModelId;
}

export interface FilesPull extends HubOptions {
  readonly repo: string;
  /** What they are together: leftovers of an interrupted pull are known by `repo:name`. */
  readonly name: string;
  /** In the repository. */
  readonly paths: readonly string[];
}

/** Throws `hub_*`, `quant_*`, `checksum_mismatch`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function pullModel({ id, ...options }: PullOptions): Promise<PullResult> {
  const repo = repoOf(id);
  return fromHub(options, repo, id.tag, (tree) => {
    const { model, projector } = selectFiles(repo, id.tag, tree);
    return [...model, ...(projector ? [projector] : [])];
  });
}

/**
 * Voices and transcription models, which are no GGUF; the result has them in the order of the paths. Throws `hub_*`,
 * `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`.
 */
export async function pullFiles({ repo, name, paths, ...options }: FilesPull): Promise<PullResult> {
  return fromHub(options, repo, name, (tree) => paths.map((path) => requireFile(tree, repo, path)));
}

function requireFile(tree: readonly HubFile[], repo: string, path: string): HubFile {
  const file = tree.find((entry) => entry.path.normalize("NFC") === path.normalize("NFC"));
  if (file) return file;
  throw new GatewayError("hub_not_found", `${repo} has no file ${path}`);
}

async function fromHub(options: HubOptions, repo: string, tag: string, select: Select): Promise<PullResult> {
  const { cacheDir, signal, revision = "main" } = options;
  if (signal.aborted) throw cancelled(repo);
  options.onProgress(resolving);
  const { commit, tree, files } = await listFiles(options, repo, revision, select);
  // Names come from outside: each is checked before anything is written.
  for (const { path } of files) snapshotPath(cacheDir, repo, commit, path);
  const tuning = { ...defaultTuning, ...options.tuning };
  const fill = createFill(options, { repo, commit, revision }, tuning);
  return bring(options, { repo, tag, commit, revision, files, tree, fill });
}
