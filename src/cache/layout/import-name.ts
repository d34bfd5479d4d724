// What the files of an imported model are called. Pure.
import { inferTag, type ModelId, shardOf } from "../../core/ids.ts";
import { isSafePath } from "./layout.ts";

/** The source's own name if it has the tag; else one that does, or the model would never be found under its id. */
export function fileNameFor(id: ModelId, file: string): string {
  const hasTag = (name: string): boolean => inferTag(name).toLowerCase() === id.tag.toLowerCase();
  // Without the ending, or with another spelling of it, nothing lists the file.
  if (file.endsWith(".gguf") && hasTag(file)) return file;
  const suffix = /-\d{5}-of-\d{5}(?=\.gguf$)/i.exec(file)?.[0] ?? "";
  const plain = `${id.name}-${id.tag}${suffix}.gguf`;
  return isSafePath(plain) && hasTag(plain) ? plain : `${id.tag}${suffix}.gguf`;
}

/**
 * The sha256 in the name of a file that a store names by its content, as Ollama does: it is never written again, so a link to it
 * is as good as a copy. Null for other files, which their owner may overwrite in place.
 */
export function contentDigest(path: string): string | null {
  return /(?:^|[\\/])sha256-([0-9a-f]{64})$/.exec(path)?.[1] ?? null;
}

/** All shards of the model that the source is one of, in order. */
export function shardPaths(source: string): string[] {
  const shard = shardOf(source);
  if (!shard) return [source];
  return Array.from({ length: shard.count }, (_, index) =>
    source.replace(/-\d{5}-of-/, `-${String(index + 1).padStart(5, "0")}-of-`),
  );
}
