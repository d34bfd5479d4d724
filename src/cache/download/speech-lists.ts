// The official lists of voices and transcription models.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import { createSharedWork } from "../../core/shared-work.ts";
import type { HubClient } from "../../hub/client.ts";
import { type ModelFile, transcriptionRepo } from "../../speech/transcription-models.ts";
import { parseManifest, requireVoice, type Voice, voiceRepo } from "../../speech/voices.ts";

const manifestPath = "voices.json";
/** 173 voices are 250 kB. */
const manifestLimit = 16 * 1024 * 1024;
/** ms after a failure in which the list of before is answered without asking. */
const restMs = 60_000;

export type SpeechLists = ReturnType<typeof createSpeechLists>;

interface ListOptions {
  readonly client: Pick<HubClient, "openFile" | "listTree">;
  /** ms until the hub is asked again. */
  readonly freshMs: number;
  readonly now: () => number;
}

/** Asks the hub once for all callers that wait. While it cannot be reached the lists of before are answered; without one they throw `hub_*`. */
export function createSpeechLists(options: ListOptions) {
  const { client } = options;
  const voices = createKeptList<Voice>(options, async (signal) => {
    const { body } = await client.openFile(voiceRepo, "main", manifestPath, { from: 0, signal });
    const tooLong = (): GatewayError =>
      new GatewayError("hub_unreachable", `voice list from the hub exceeds ${manifestLimit} bytes`);
    const found = parseManifest(parseJson((await readAtMost(body, manifestLimit, tooLong)).toString("utf8")));
    if (found) return found;
    throw new GatewayError("hub_unreachable", `${manifestPath} from the hub is not a list`);
  });
  return {
    /** All files of the transcription models' repository. */
    modelFiles: createKeptList<ModelFile>(options, (signal) => client.listTree(transcriptionRepo, "main", signal)),
    voices,
    /** Throws `voice_not_found`. */
    officialVoice: async (name: string, signal: AbortSignal): Promise<Voice> =>
      requireVoice(await voices(signal), name),
  };
}

function createKeptList<T>(
  { freshMs, now }: ListOptions,
  fetchList: (signal: AbortSignal) => Promise<readonly T[]>,
): (signal: AbortSignal) => Promise<readonly T[]> {
  let known: readonly T[] | null = null;
  let askAgainAt = 0;
  const ask = createSharedWork(async (signal) => {
    try {
      known = await fetchList(signal);
      askAgainAt = now() + freshMs;
    } catch (error) {
      const failure = toGatewayError(error);
      if (known === null || failure.code === "cancelled" || signal.aborted) throw failure;
      askAgainAt = now() + restMs;
    }
    return known;
  });
  return async (signal) => (known !== null && now() < askAgainAt ? known : ask(signal));
}
