// Whether a cached model is the one that a pull of its name would bring. A short tag is given to the cached file of a repository,
// and on the hub it may mean several files, or another one.

import { selectFiles } from "../cache/layout/select.ts";
import { GatewayError } from "../core/errors.ts";
import { fileStem } from "../core/ids.ts";
import type { HubClient } from "../hub/client.ts";
import type { CachedModel } from "../plan/observed.ts";
import { pathInRepo } from "../plan/removals.ts";

/**
 * Asks the hub if the name does not decide; a hub that is unreachable, or no longer has the model, changes nothing.
 * Errors: `quant_ambiguous` where it is not, `cancelled`.
 */
export async function requireMeant(
  hub: Pick<HubClient, "listTree">,
  id: string,
  cached: CachedModel,
  signal: AbortSignal,
): Promise<void> {
  const repo = cached.repo;
  const tag = id.slice(id.indexOf(":") + 1);
  const stem = fileStem(pathInRepo(cached, cached.files[0] ?? ""));
  if (isSpelledOut(repo, tag, stem)) return;
  const meant = await stemOnHub(hub, repo, tag, signal);
  if (meant === null || meant.toLowerCase() === stem.toLowerCase()) return;
  throw new GatewayError(
    "quant_ambiguous",
    `${id} is ${stem} here, and ${meant} on the hub: name one of the two as the tag.`,
  );
}

/** A file's name, or what the repository is called with the tag behind it, which comes first wherever there are several. */
function isSpelledOut(repo: string, tag: string, stem: string): boolean {
  const plain = repo.slice(repo.indexOf("/") + 1).replace(/[-._]gguf$/i, "");
  const folded = stem.toLowerCase();
  return (
    folded === tag.toLowerCase() || ["-", ".", "_"].some((joint) => folded === `${plain}${joint}${tag}`.toLowerCase())
  );
}

/** Null if the hub cannot decide. */
async function stemOnHub(
  hub: Pick<HubClient, "listTree">,
  repo: string,
  tag: string,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    const { model } = selectFiles(repo, tag, await hub.listTree(repo, "main", signal));
    return fileStem(model[0]?.path ?? "");
  } catch (error) {
    if (!(error instanceof GatewayError) || ["quant_ambiguous", "cancelled"].includes(error.code)) throw error;
    return null;
  }
}
