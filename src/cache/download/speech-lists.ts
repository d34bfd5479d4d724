// The official lists of voices and transcription models.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import type { HubClient } from "../../hub/client.ts";
import { type ModelFile, transcriptionRepo } from "../../speech/transcription-models.ts";
import { parseManifest, requireVoice, type Voice, voiceRepo } from "../../speech/voices.ts";
import { type KeptListOptions, keptList } from "./kept-list.ts";
import { lacksDescription, localVoices } from "./speech-files.ts";

const manifestPath = "voices.json";
/** 173 voices are 250 kB. */
const manifestLimit = 16 * 1024 * 1024;
export type SpeechLists = ReturnType<typeof createSpeechLists>;

interface ListOptions extends KeptListOptions {
  readonly client: HubClient;
  readonly voicesDir: string;
}

/** Asks the hub at most every `freshMs`, once for all callers that wait. Both lists are kept in `stateDir`. */
export function createSpeechLists(options: ListOptions) {
  const { client, voicesDir } = options;
  const official = keptList<Voice>(options, "voices.json", parseManifest, async (signal) => {
    const { body } = await client.openFile(voiceRepo, "main", manifestPath, { from: 0, signal });
    const tooLong = (): GatewayError =>
      new GatewayError("hub_unreachable", `voice list from the hub exceeds ${manifestLimit} bytes`);
    return (await readAtMost(body, manifestLimit, tooLong)).toString("utf8");
  });
  const modelFiles = keptList<ModelFile>(options, "transcription-models.json", readModelFiles, async (signal) => {
    const files = await client.listTree(transcriptionRepo, "main", signal);
    return JSON.stringify(files.map(({ path, size }) => ({ path, size })));
  });
  return {
    /** All files of the transcription models' repository. Throws `hub_*` if the hub cannot be reached and never was. */
    modelFiles,
    /** The official voices; those on the disk if the hub cannot be reached and never was. Throws `hub_*` if there are none. */
    voices: async (signal: AbortSignal): Promise<readonly Voice[]> => {
      try {
        return await official(signal);
      } catch (error) {
        const local = await localVoices(voicesDir);
        if (local.length === 0 || toGatewayError(error).code === "cancelled") throw error;
        return local;
      }
    },
    /** Throws `voice_not_found`, which names the missing part of a voice that was put there by hand, `hub_*`. */
    officialVoice: async (name: string, signal: AbortSignal): Promise<Voice> => {
      if (!(await lacksDescription(voicesDir, name))) return requireVoice(await official(signal), name);
      const message = `${name}.onnx has no description: ${name}.onnx.json is missing`;
      throw new GatewayError("voice_not_found", message, { param: "voice" });
    },
  };
}

function readModelFiles(value: unknown): readonly ModelFile[] | null {
  const entries: readonly (Partial<ModelFile> | null)[] = Array.isArray(value) ? value : [];
  const isFile = (entry: Partial<ModelFile> | null): entry is ModelFile =>
    typeof entry?.path === "string" && typeof entry.size === "number";
  const files = entries.filter(isFile);
  return files.length === 0 ? null : files;
}
