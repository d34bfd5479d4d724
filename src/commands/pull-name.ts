// The model that a pull means: names of the hub's models, and the default tag.
import { type HubFile, selectFiles, tagsOf } from "../cache/layout/select.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { isRepo, normaliseName, parseModelId } from "../core/ids.ts";
import type { HubClient } from "../hub/client.ts";

/** The default tag if a repository has several models: the most popular one. */
const usualTag = "Q4_K_M";
/** At most so many names in one message. */
const mostNamed = 40;

/** The id, `OWNER/NAME:TAG`. Errors: `invalid_request`, `quant_ambiguous`, `quant_not_found`, `hub_*`. */
export async function modelToPull(
  { hub, catalog }: { readonly hub: Pick<HubClient, "listTree">; readonly catalog: Pick<Catalog, "find"> },
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const plain = normaliseName(name).replace(/^(?:https?:\/\/)?(?:hf\.co|huggingface\.co)\//i, "");
  if (parseModelId(plain)) return plain;
  try {
    if (isRepo(plain)) return `${plain}:${tagFor(plain, await hub.listTree(plain, "main", signal))}`;
    const takes = "a pull takes OWNER/NAME, OWNER/NAME:TAG or hf.co/OWNER/NAME:TAG";
    throw new GatewayError("invalid_request", `${JSON.stringify(name)} names no repository: ${takes}`);
  } catch (error) {
    if (!["invalid_request", "hub_unreachable"].includes(toGatewayError(error).code)) throw error;
    // A model that is here will do, under a short name or without the hub.
    const known = catalog.find(plain);
    if (!known) throw error;
    return known.id;
  }
}

function tagFor(repo: string, tree: readonly HubFile[]): string {
  const tags = tagsOf(tree);
  const [only] = tags;
  if (only !== undefined && tags.length === 1) return only;
  if (tags.length === 0 || tags.includes(usualTag)) {
    selectFiles(repo, usualTag, tree);
    return usualTag;
  }
  throw new GatewayError(
    "quant_ambiguous",
    `${repo} has several models; name one of ${tags.slice(0, mostNamed).join(", ")}${tags.length > mostNamed ? ", …" : ""} as the tag.`,
  );
}
