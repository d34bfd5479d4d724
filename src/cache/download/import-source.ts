// The local file that a model is imported from, with its shards: where it is, whether it is whole, when it has changed.
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { GatewayError, isAbsent, systemCode } from "../../core/errors.ts";
import { shardOf } from "../../core/ids.ts";
import { isWholeGguf } from "../gguf/metadata.ts";

/** Relative to the folder of gateway.yaml. */
export function resolveSource(configPath: string, source: string): string {
  return resolve(dirname(configPath), source);
}

/** All shards of the model that the source is one of, in order. */
function shardPaths(source: string): string[] {
  const shard = shardOf(source);
  if (!shard) return [source];
  return Array.from({ length: shard.count }, (_, index) =>
    source.replace(/-\d{5}-of-/, `-${String(index + 1).padStart(5, "0")}-of-`),
  );
}

/** Sizes and times of all shards; null if one is not there. */
export async function sourceStamp(source: string): Promise<string | null> {
  const entries = await Promise.all(shardPaths(source).map((path) => stat(path).catch(() => null)));
  return entries.every((entry) => entry?.isFile())
    ? entries.map((entry) => `${entry?.size}:${entry?.mtimeMs}`).join(" ")
    : null;
}

/** The paths of all shards, in order. Errors: `source_missing`, `not_a_model` where one of them cannot be imported. */
export async function requireShards(source: string): Promise<readonly string[]> {
  const paths = shardPaths(source);
  for (const path of paths) await requireSource(path);
  return paths;
}

async function requireSource(source: string): Promise<void> {
  let isFile = false;
  try {
    isFile = (await stat(source)).isFile();
    await access(source, constants.R_OK);
  } catch (error) {
    if (!isAbsent(error)) throw sourceError(source, error);
  }
  if (!isFile) throw new GatewayError("source_missing", `${source} is not there`);
  if (!(await isWholeGguf(source))) throw new GatewayError("not_a_model", `${source} is not a whole GGUF file`);
}

/** An error of the cache has its code already. */
export function sourceError(source: string, error: unknown): unknown {
  const code = error instanceof GatewayError ? undefined : systemCode(error);
  if (code === undefined) return error;
  return new GatewayError("source_missing", `${source} cannot be read (${code})`, { cause: error });
}
