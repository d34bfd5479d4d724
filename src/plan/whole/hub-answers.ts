// What the hub said of the files that a plan pulls. Pure.
import type { HubFile } from "../../cache/layout/select.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { Action, BackoffEntry } from "../actions.ts";

/** Why an action will fail. */
export type Failure = Pick<BackoffEntry, "code" | "reason" | "message" | "hint">;

export type HubAnswer =
  /** `tree`: all files of the commit. */
  | {
      readonly kind: "files";
      readonly commit: string;
      readonly files: readonly HubFile[];
      readonly tree: readonly HubFile[];
    }
  /** Of a voice or a transcription model. */
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "refused"; readonly failure: Failure }
  /** The hub was not asked, or did not answer in time. */
  | { readonly kind: "unknown"; readonly why: string };

/** By {@link questionOf}. */
export type HubAnswers = ReadonlyMap<string, HubAnswer>;

export type Pull = Extract<Action, { readonly kind: "model.pull" | "voice.pull" | "transcription.pull" }>;

export function isPull(action: Action): action is Pull {
  return action.kind === "model.pull" || action.kind === "voice.pull" || action.kind === "transcription.pull";
}

export function questionOf(pull: Pull): string {
  return pull.kind === "model.pull" ? `${pull.key} ${pull.revision ?? "main"}` : pull.key;
}

export function failureOf({ code, reason, message, hint }: GatewayError): Failure {
  return { code, reason, message, hint };
}
