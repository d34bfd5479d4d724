// The local file that a model is imported from, with its shards: where it is, whether it is whole, when it has changed.
import { constants, type Stats } from "node:fs";
import { access } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { GatewayError, isAbsent, systemCode } from "../../core/errors.ts";
import type { ObservedSource } from "../../plan/observed.ts";
import { stat } from "../../state/files.ts";
import { isWholeGguf } from "../gguf/metadata.ts";
import { shardPaths } from "../layout/import-name.ts";

/** Relative to the folder of gateway.yaml. */
export function resolveSource(configPath: string, source: string): string {
  return resolve(dirname(configPath), source);
}

/** Sizes and times of all shards; null if one is not there. */
export async function sourceStamp(source: string): Promise<string | null> {
  return (await sourceOf(source)).stamp;
}

/** `bytes`: of all shards. */
export async function sourceOf(source: string): Promise<ObservedSource & { readonly bytes: number }> {
  const entries = await Promise.all(shardPaths(source).map((path) => stat(path).catch(() => null)));
  const files = entries.filter((entry) => entry?.isFile() === true) as Stats[];
  const stamp = files.length < entries.length ? null : files.map(({ size, mtimeMs }) => `${size}:${mtimeMs}`).join(" ");
  return { path: source, stamp, bytes: files.reduce((sum, { size }) => sum + size, 0) };
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
