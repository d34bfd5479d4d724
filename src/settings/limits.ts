// What a client may take of the gateway: sizes, times and counts, read from the settings.
import type { SettingValues } from "./values.ts";

export interface LimitSettings {
  /** Bytes that a chat's body may have. */
  readonly bodyLimit: number;
  /** Bytes. */
  readonly uploadLimit: number;
  /** Bytes of memory that the transcription engine may take for one upload. */
  readonly transcriptionMemory: number;
  /** Bytes that a request's line and headers may have. */
  readonly headerLimit: number;
  /** ms in which they must have come. */
  readonly headerTimeoutMs: number;
  /** ms in which the whole request must have come. */
  readonly requestTimeoutMs: number;
  /** ms that a connection without a request stays open. */
  readonly idleTimeoutMs: number;
  /** ms that a client may leave unread what it is sent. */
  readonly writeStallMs: number;
  /** Open at once. */
  readonly maxConnections: number;
  /** Readers of /api/events at once. */
  readonly eventListeners: number;
}

export function readLimits({ whole, ms }: SettingValues): LimitSettings {
  return {
    bodyLimit: whole("body-limit", 1024),
    uploadLimit: whole("upload-limit", 1024),
    transcriptionMemory: whole("transcription-memory", 1024),
    headerLimit: whole("header-limit", 1024),
    headerTimeoutMs: Math.max(100, ms("header-timeout")),
    requestTimeoutMs: Math.max(100, ms("request-timeout")),
    idleTimeoutMs: Math.max(100, ms("idle-timeout")),
    writeStallMs: Math.max(100, ms("write-stall")),
    maxConnections: whole("max-connections", 1),
    eventListeners: whole("event-listeners", 0),
  };
}
