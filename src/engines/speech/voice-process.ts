// A process that speaks with one voice: its start, and its end after a lost piece of text. Cuts no text.
import type { Pcm } from "../../speech/wav.ts";
import { hasEnded, type ServerCommand, type ServerOptions, startServer } from "../process/server-process.ts";
import { describesVoice, type PieceRequest, requireSpeech, speakPiece } from "./piper-http.ts";
import type { EngineRun } from "./speech-engine.ts";

/** What is started, and how. */
export interface VoiceCommand extends Omit<ServerCommand, "isReady"> {
  /** Secret path below which it answers, `/SECRET`; empty for an engine without one. */
  readonly basePath: string;
}

export interface VoiceRun extends EngineRun {
  /** Throws `upstream_failed`, with a cause where it broke off. */
  speak(piece: PieceRequest): Promise<Pcm>;
}

export interface VoiceOptions extends ServerOptions {
  /** Default 500. Piper gives no memory back, 3.5 GB were seen; these are about half an hour of sound. */
  readonly piecesPerProcess?: number;
  /** Default 120 s. sherpa-onnx was seen to lose a piece and to answer every probe as before. */
  readonly pieceTimeoutMs?: number;
}

/** Throws as {@link startServer}, and `engine_failed` for an older Piper. */
export async function startVoice(
  { basePath, ...command }: VoiceCommand,
  options: VoiceOptions,
  signal: AbortSignal,
): Promise<VoiceRun> {
  const { piecesPerProcess = 500, pieceTimeoutMs = 120_000 } = options;
  // Below a secret path only ours describes a voice; another program on the port was taken for an old Piper.
  const isReady: ServerCommand["isReady"] = async (origin, limit) =>
    (await describesVoice(origin + basePath, limit)) || basePath === "";
  const process = await startServer("the speech engine", { ...command, isReady }, options, signal);
  const base = process.origin + basePath;
  await requireSpeech(base, signal).catch(async (error: unknown) => {
    await process.stop(0);
    throw error;
  });
  let pieces = 0;
  return {
    process,
    isWorn: () => pieces >= piecesPerProcess,
    speak: async (piece) => {
      pieces++;
      const limit = AbortSignal.timeout(pieceTimeoutMs);
      try {
        return await speakPiece(base, piece, limit);
      } catch (error) {
        if (limit.aborted)
          await process.kill(`it did not speak a piece of text within ${pieceTimeoutMs / 1000} s and was ended`);
        else if (hasEnded(error)) await process.settle();
        throw error;
      }
    },
  };
}
