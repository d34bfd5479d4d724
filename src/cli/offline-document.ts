// The document of a gateway that is started now: what is saved, with the changes of the file since. Writes nothing.
import { GatewayError } from "../core/errors.ts";
import {
  type Desired,
  emptyTree,
  mergeFile,
  sparedAfter,
  standingRemovals,
  toDesired,
} from "../desired/document/document.ts";
import { parseBytes } from "../desired/document/parse.ts";
import { readSavedDocument } from "../desired/saved.ts";
import type { Settings } from "../settings/settings.ts";

/** `bytes`: of gateway.yaml, null where there is none. Errors: `invalid_document`, with the first thing that is wrong in the file. */
export async function offlineDocument(
  { stateDir, configPath, presetAllow }: Settings,
  bytes: Buffer | null,
): Promise<Desired> {
  const saved = await readSavedDocument(stateDir, presetAllow);
  if (bytes === null) return toDesired(saved.tree, saved.removals, saved.spared);
  const parsed = parseBytes(bytes, presetAllow);
  if (!parsed.ok) {
    const [first] = parsed.problems;
    throw new GatewayError(
      "invalid_document",
      `${configPath}:${first?.line ?? 1}:${first?.column ?? 1}: ${first?.message ?? "invalid"}`,
    );
  }
  const before = saved.applied ?? emptyTree;
  const tree = mergeFile(saved.tree, before, parsed.tree);
  const file = { before, after: parsed.tree };
  const spared = sparedAfter(saved.spared, { before: saved.tree, after: tree, file });
  return toDesired(tree, standingRemovals(saved.removals, tree), spared);
}
