// Where each family is served, from the two prefixes that are set, and whether these conflict.

/** Where each family is served, the main prefix first; `""` is the root. */
export type Prefixes = Readonly<Record<"own" | "native" | "compat" | "llama" | "front", readonly string[]>>;

/** Without trailing slashes: `/alpha/api`, `/beta/v1`. */
export interface ChosenPrefixes {
  readonly nativePrefix: string;
  readonly compatPrefix: string;
}

/** The second of each is for clients that know only a root; the third finds the one family beside the other's prefix. */
export function servedPrefixes({ nativePrefix, compatPrefix }: ChosenPrefixes): Prefixes {
  return {
    own: [""],
    native: unique([nativePrefix, "/api"]),
    compat: unique([compatPrefix, "/v1", `${parentOf(nativePrefix)}/v1`]),
    llama: unique([parentOf(compatPrefix), ""]),
    front: unique(["", parentOf(nativePrefix), parentOf(compatPrefix)]),
  };
}

/** First words of the addresses that the gateway has for itself at the root, but for those below `/api`. */
export const ownWords: readonly string[] = ["status", "livez", "readyz", "metrics", "openapi.json", "ui", "hub", "k"];

/** First words of llama.cpp's own addresses. */
export const llamaWords: readonly string[] = (
  "models props health chat completions completion embeddings embedding " +
  "responses rerank reranking infill tokenize detokenize apply-template"
).split(" ");

/** In words, which family is at or below another's place; null where both prefixes can be served. */
export function prefixProblem(chosen: ChosenPrefixes): string | null {
  const { native, compat, llama } = servedPrefixes(chosen);
  const families = [...placesOf("Ollama's API", native), ...placesOf("OpenAI's API", compat)];
  const own = ownWords.map((word) => `/${word}`);
  const upstream = llama.flatMap((prefix) => llamaWords.map((word) => `${prefix}/${word}`));
  const taken = [...families, ...placesOf("the gateway's own API", own), ...placesOf("llama.cpp's API", upstream)];
  for (const place of families) {
    const other = taken.find((each) => each !== place && `${place.path}/`.startsWith(`${each.path}/`));
    if (other) return `${place.of} at ${place.path} would be at or below ${other.of} at ${other.path}`;
  }
  return null;
}

function placesOf(of: string, paths: readonly string[]): { readonly path: string; readonly of: string }[] {
  return paths.map((path) => ({ path, of }));
}

/** `/alpha/api` → `/alpha`; `/api` → the root, which is empty. */
function parentOf(prefix: string): string {
  return prefix.slice(0, prefix.lastIndexOf("/"));
}

function unique(prefixes: readonly string[]): string[] {
  return [...new Set(prefixes)];
}
