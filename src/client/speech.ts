// Speech: text from audio, audio from text, lists of models and voices.
import type {
  CachedTranscriptionModels,
  CachedVoices,
  SpeechRequest,
  Transcription,
  TranscriptionModels,
  Voices,
} from "../../schemas/speech.ts";
import type { CallOptions, Transport } from "./transport.ts";

export interface TranscribeOptions extends CallOptions {
  readonly model?: string;
  /** Default `audio.wav`. */
  readonly fileName?: string;
}

/** All fail with `speech_off` where speech is off. */
export interface SpeechCalls {
  transcribe(audio: Blob, options?: TranscribeOptions): Promise<Transcription>;
  /** Resolves with a WAV file. */
  speak(request: SpeechRequest, options?: CallOptions): Promise<Blob>;
  readonly voices: {
    cached(options?: CallOptions): Promise<CachedVoices["voices"]>;
    /** At most 50. */
    search(q: string, options?: CallOptions): Promise<Voices>;
  };
  readonly transcriptionModels: {
    cached(options?: CallOptions): Promise<CachedTranscriptionModels["models"]>;
    search(q: string, options?: CallOptions): Promise<TranscriptionModels>;
  };
}

export function speechCalls(transport: Transport): SpeechCalls {
  return {
    transcribe: (audio, { model, fileName = "audio.wav", signal } = {}) => {
      const form = new FormData();
      form.set("file", audio, fileName);
      if (model !== undefined) form.set("model", model);
      return transport.json("/v1/audio/transcriptions", { method: "POST", form, signal });
    },
    speak: async (json, { signal } = {}) => {
      const response = await transport.send("/v1/audio/speech", { method: "POST", json, signal });
      return response.blob();
    },
    voices: {
      cached: async (options = {}) => (await transport.json<CachedVoices>("/api/tts/voices/cached", options)).voices,
      search: (q, { signal } = {}) => transport.json("/api/tts/voices/search", { query: { q }, signal }),
    },
    transcriptionModels: {
      cached: async (options = {}) =>
        (await transport.json<CachedTranscriptionModels>("/api/stt/models/cached", options)).models,
      search: (q, { signal } = {}) => transport.json("/api/stt/models/search", { query: { q }, signal }),
    },
  };
}
