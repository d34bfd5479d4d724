// Piper voices without Python: the command that serves one with sherpa-onnx (sherpa-server.ts, in a process of its own).
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { SherpaInstallation } from "../install/sherpa.ts";
import type { PreparedVoice } from "./sherpa-voice.ts";
import type { VoiceCommand } from "./voice-process.ts";

/** Handed to the process as JSON. */
export interface SherpaServerSettings extends SherpaInstallation, PreparedVoice {
  readonly port: number;
  readonly threads: number;
}

/** Its server answers below what this holds, and nowhere else: not for other users of the machine, nor for web pages. */
export const basePathVariable = "MODEL_GATEWAY_SPEECH_PATH";

export function sherpaCommand(installed: SherpaInstallation, voice: PreparedVoice, threads: number): VoiceCommand {
  const basePath = `/${randomBytes(16).toString("hex")}`;
  const settings = (port: number): SherpaServerSettings => ({ port, threads, ...installed, ...voice });
  return {
    path: process.execPath,
    workingDir: installed.packageDir,
    basePath,
    // Not an argument: other users can read those.
    environment: { [basePathVariable]: basePath },
    args: (port) => [fileURLToPath(new URL("./sherpa-server.js", import.meta.url)), JSON.stringify(settings(port))],
  };
}
