// Which voice a request means: refused here, before anything is changed, where it can be none or is in no list.
import { GatewayError } from "../../core/errors.ts";
import { type Speakers, speakerNumber } from "../../speech/voice-config.ts";
import { findVoiceId, isVoiceId, splitVoiceName, type Voice } from "../../speech/voices.ts";

export interface VoiceChoice {
  /** An id; null: the document's. */
  readonly voice: string | null;
  /** Null: the voice's only or first one. */
  readonly speaker: number | null;
}

export interface VoiceLists {
  /** Ids of the voices on disk. */
  cachedVoices(): Promise<readonly string[]>;
  /** Of a voice on disk. Throws `engine_failed` where its description is damaged. */
  speakersOf(voice: string): Promise<Speakers>;
  /** Throws `voice_not_found`, `hub_*`. */
  officialVoice(name: string, signal: AbortSignal): Promise<Voice>;
}

/** Clients made for OpenAI's API send one of its voices. */
const openAiVoices: ReadonlySet<string> = new Set(
  "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split(" "),
);

/** `name`: a voice (`en_US-lessac-medium`) or a speaker of it (`en_GB-vctk-medium:p239`). Errors: `invalid_request`, `hub_*`. */
export async function chooseVoice(name: string, lists: VoiceLists, signal: AbortSignal): Promise<VoiceChoice> {
  if (openAiVoices.has(name.trim().toLowerCase())) return { voice: null, speaker: null };
  const { voice, speaker } = splitVoiceName(name);
  if (!isVoiceId(voice))
    throw new GatewayError("invalid_request", `${JSON.stringify(voice.slice(0, 120))} can be no voice`, {
      param: "voice",
    });
  const here = findVoiceId(await lists.cachedVoices(), voice);
  if (here !== null)
    return {
      // As the document has it.
      voice: here.normalize("NFC"),
      speaker: speaker === null ? null : speakerNumber(await lists.speakersOf(here), speaker, here),
    };
  const official = await lists.officialVoice(voice, signal);
  return { voice: official.key, speaker: speakerNumber(official, speaker, official.key) };
}
