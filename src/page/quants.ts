// What of a repository can be pulled: a row per model, its shards together. Pure.
import { groupFiles, missingShards } from "../cache/layout/model-files.ts";
import type { HubFiles } from "../client/index.ts";
import { inferTag, isRepo, parseModelId } from "../core/ids.ts";

export interface Quant {
  /** OWNER/NAME:TAG */
  readonly id: string;
  readonly tag: string;
  readonly bytes: number;
  readonly files: number;
}

/** The smallest first. Two files that one short tag means go by their names. */
export function quantsOf(repo: string, files: HubFiles): Quant[] {
  const whole = groupFiles(files).filter((group) => missingShards(group).length === 0);
  const tags = whole.map(({ stem }) => inferTag(stem));
  return whole
    .map(({ stem, files: parts }, at) => {
      const short = tags[at] ?? stem;
      const tag = tags.indexOf(short) === tags.lastIndexOf(short) ? short : stem;
      return { id: `${repo}:${tag}`, tag, bytes: parts.reduce((sum, { size }) => sum + size, 0), files: parts.length };
    })
    .toSorted((one, other) => one.bytes - other.bytes);
}

/** Whether a text names a model, a repository, or is to be searched for. */
export function kindOf(text: string): "model" | "repository" | "search" {
  if (parseModelId(text)) return "model";
  return isRepo(text) ? "repository" : "search";
}
