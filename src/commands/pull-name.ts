// The model that a pull means: names of the hub's models, and the default tag.

import { type HubFile, selectFiles, tagsOf } from "../cache/layout/select.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { isRepo, normaliseName, parseModelId } from "../core/ids.ts";
import type { HubClient } from "../hub/client.ts";
import { isModelFileName } from "../speech/transcription-models.ts";

/** The default tag if a repository has several models: the most popular one. */
const usualTag = "Q4_K_M";

/** `de_DE-…`; any other word may be the id of a voice too, but a pull of `mistral` means a model. */
const officialVoice = /^[a-z]{2,3}_[A-Z]{2}-/;

/** At most so many names in one message. */
const mostNamed = 40;

/**
 * The id, `OWNER/NAME:TAG`. Errors: `invalid_request` for a name that is none of the hub's and of no model here,
 * `quant_ambiguous`, `quant_not_found`, `hub_*`.
 */
export async function modelToPull(
  deps: { readonly hub: Pick<HubClient, "listTree">; readonly catalog: Pick<Catalog, "resolve"> },
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const plain = normaliseName(name).replace(/^(?:https?:\/\/)?(?:hf\.co|huggingface\.co)\//i, "");
  if (parseModelId(plain)) return plain;
  if (!isRepo(plain)) return hereAlready(deps.catalog, name);
  try {
    return `${plain}:${tagFor(plain, await deps.hub.listTree(plain, "main", signal))}`;
  } catch (error) {
    const away = error instanceof GatewayError && error.code === "hub_unreachable";
    // Without the hub a model that is here already will do.
    const here = away ? tryHere(deps.catalog, plain) : undefined;
    if (here === undefined) throw error;
    return here;
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

function hereAlready(catalog: Pick<Catalog, "resolve">, name: string): string {
  const here = tryHere(catalog, name);
  if (here !== undefined) return here;
  const speech = officialVoice.test(name)
    ? "a voice: it is pulled once the document names it (speech.synthesis.voice), or a request to /v1/audio/speech"
    : isModelFileName(name) &&
      "a transcription model: it is pulled once the document names it (speech.transcription.model)";
  if (speech) throw new GatewayError("invalid_request", `${JSON.stringify(name)} is ${speech}`);
  throw new GatewayError(
    "invalid_request",
    `${JSON.stringify(name)} names no repository: a pull takes OWNER/NAME, OWNER/NAME:TAG or hf.co/OWNER/NAME:TAG`,
  );
}

function tryHere(catalog: Pick<Catalog, "resolve">, name: string): string | undefined {
  try {
    return catalog.resolve(name).id;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "model_not_found") return undefined;
    throw error;
  }
}
