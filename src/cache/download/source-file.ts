// The local file that a model is imported from: its path, its shards, and a stamp that changes with them. Reads no content.
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { shardOf } from "../../core/ids.ts";

/** Relative to the folder of gateway.yaml. */
export function resolveSource(configPath: string, source: string): string {
  return resolve(dirname(configPath), source);
}

/** All shards of the model that the source is one of, in order. */
export function shardPaths(source: string): string[] {
  const shard = shardOf(source);
  if (!shard) return [source];
  return Array.from({ length: shard.count }, (_, index) =>
    source.replace(/-\d{5}-of-/, `-${String(index + 1).padStart(5, "0")}-of-`),
  );
}

/** Sizes and times of all shards; null where one is not there. */
export async function sourceStamp(source: string): Promise<string | null> {
  const entries = await Promise.all(shardPaths(source).map((path) => stat(path).catch(() => null)));
  return entries.every((entry) => entry?.isFile())
    ? entries.map((entry) => `${entry?.size}:${entry?.mtimeMs}`).join(" ")
    : null;
}
