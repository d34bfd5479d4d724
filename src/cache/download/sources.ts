// Where a pull's file list and bytes come from. The hub has the last word on what a file is, the mirror is asked first for its bytes.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { HubClient } from "../../hub/client.ts";
import type { HubFile } from "../layout/select.ts";
import type { Delivery } from "./fetch.ts";
import { mismatch, type TransferTuning } from "./transfer.ts";
import { transferAside } from "./transfer-thread.ts";

/** Another gateway, or another hub, that is closer. */
export interface Mirror {
  readonly client: HubClient;
  /** It may have been started with this gateway, and not be reached yet. */
  readonly isStarting?: () => boolean;
  /** A pull of the repository goes on without it. Called once per pull. */
  readonly onMiss: (repo: string, why: GatewayError) => void;
}

export interface Sources {
  readonly client: HubClient;
  readonly mirror?: Mirror | null;
  readonly signal: AbortSignal;
}

export interface Listed {
  readonly commit: string;
  readonly tree: readonly HubFile[];
  readonly files: readonly HubFile[];
}

export type Select = (tree: readonly HubFile[]) => readonly HubFile[];

/** The commit of a revision, its files, and those of them that are wanted: from the hub, or from the mirror if the hub has no answer. */
export async function listFiles(
  { client, mirror, signal }: Sources,
  repo: string,
  revision: string,
  select: Select,
): Promise<Listed> {
  const listedBy = async (source: HubClient): Promise<Omit<Listed, "files">> => {
    const commit = await source.resolveRevision(repo, revision, signal);
    return { commit, tree: await source.listTree(repo, commit, signal) };
  };
  try {
    const listed = await listedBy(client);
    return { ...listed, files: select(listed.tree) };
  } catch (error) {
    if (!mirror || !isMiss(error)) throw error;
    try {
      const listed = await listedBy(mirror.client);
      return { ...listed, files: select(listed.tree) };
    } catch (second) {
      // A mirror lists only what it has: that it lacks the file does not mean that the hub does.
      throw toGatewayError(second).code === "mirror_busy" ? second : error;
    }
  }
}

/** Once per pull a mirror is tried twice, and given up: the hub is there as well. */
const mirrorTries = 2;

/** Brings bytes from the mirror until it fails once, then from the hub. Each file is checked against its digest by the caller. */
export function createFill(
  { client, mirror, signal }: Sources,
  { repo, commit, revision }: Pick<Delivery, "repo" | "commit" | "revision">,
  tuning: TransferTuning,
): Delivery["fill"] {
  let first = mirror;
  const miss = (error: GatewayError): void => {
    first?.onMiss(repo, error);
    first = null;
  };
  return async (file, target) => {
    // What came before had another digest: that is the mirror's fault, or of what an earlier try had left.
    if (target.isPlain) miss(mismatch(file, "other bytes than its digest promises"));
    const order = { repo, file, signal, ...target };
    if (first) {
      try {
        // By the name of the revision: a mirror may have the same file of an older commit.
        const tries = Math.min(mirrorTries, tuning.tries);
        await transferAside({ ...order, client: first.client, commit: revision, tuning: { ...tuning, tries } });
        return;
      } catch (error) {
        if (!isMiss(error)) throw error;
        const failure = toGatewayError(error);
        if (failure.code === "hub_unreachable" && first.isStarting?.() === true)
          throw new GatewayError("mirror_busy", `the mirror is not reached yet: ${failure.message}`);
        miss(failure);
      }
    }
    await transferAside({ ...order, client, commit, tuning });
  };
}

/** Of the other side, so that another source may have the file. A mirror that is pulling it is waited for. */
function isMiss(error: unknown): boolean {
  const { code } = toGatewayError(error);
  return code === "checksum_mismatch" || code.startsWith("hub_");
}
