// The world after an action, as the action leaves it when all goes well; or why it will fail. Pure: the plan is made of these
// outcomes, one after the other, and a test holds them against the real ones.

import { contentDigest } from "../../cache/layout/import-name.ts";
import type { ErrorCode } from "../../core/error-catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Desired } from "../../desired/document/document.ts";
import type { Action } from "../actions.ts";
import type { Observed, SpeechKind, SpeechState } from "../observed.ts";
import { parsePreset } from "../preset-file.ts";
import { lackingSpace } from "../room.ts";
import { afterImport, afterPrune, afterPull, afterRemoval, bytesToPull } from "./cache-after.ts";
import { type Failure, failureOf, type HubAnswers, questionOf } from "./hub-answers.ts";
import { routerAfter, routerWithout } from "./router-after.ts";
import type { Stored } from "./with-repo.ts";

export interface World {
  readonly desired: Desired;
  readonly observed: Observed;
}

export type Outcome =
  /** `bytes`: downloaded, copied or deleted; null: not known, or none are. */
  | { readonly kind: "done"; readonly world: World; readonly bytes: number | null }
  /** `neededBytes`: the disk is too full for so many. */
  | { readonly kind: "fails"; readonly failure: Failure; readonly neededBytes?: number };

interface Expectation {
  readonly answers: HubAnswers;
  /** ms */
  readonly now: number;
}

export function outcomeOf(action: Action, world: World, { answers, now }: Expectation): Outcome {
  const { observed } = world;
  switch (action.kind) {
    case "model.pull":
      return pulled(action, world, { answers, now });
    case "model.import":
      return imported(action, world, now);
    case "model.remove":
      return removed(action, world);
    case "preset.write":
      return done(world, { preset: { state: "known", value: parsePreset(action.text) } });
    case "router.start":
    case "router.restart":
      return done(world, { router: routerAfter(observed, null) });
    case "router.reload":
      return done(world, { router: routerAfter(observed, action.disrupts) });
    case "voice.pull":
    case "transcription.pull":
      return pulledForSpeech(action, world, answers);
    case "speech.start":
      return done(
        world,
        speechWith(observed, action.engine, {
          phase: "ready",
          choice: action.choice,
          exitReason: "",
          idle: false,
          worn: false,
        }),
      );
    case "speech.stop":
      return done(
        world,
        speechWith(observed, action.engine, { phase: "stopped", pid: null, choice: null, exitReason: "" }),
      );
    case "cache.gc":
      return done(world, {});
    default:
      return action satisfies never;
  }
}

/** `bytes` null: not known, or none. */
function done({ desired, observed }: World, next: Partial<Observed>, bytes: number | null = null): Outcome {
  return { kind: "done", world: { desired, observed: { ...observed, ...next } }, bytes };
}

function pulled(action: Extract<Action, { kind: "model.pull" }>, world: World, { answers, now }: Expectation): Outcome {
  const { observed } = world;
  const answer = answers.get(questionOf(action));
  if (answer?.kind === "refused") return { kind: "fails", failure: answer.failure };
  const known = answer?.kind === "files" ? answer : null;
  const bytes = known && bytesToPull(observed, action.model, known, action.verify === true);
  const stored = ended(observed, action, afterPull(observed, action, known, now));
  return (bytes === null ? null : tooLarge(observed, bytes)) ?? done(world, stored, bytes);
}

function pulledForSpeech(
  action: Extract<Action, { kind: "voice.pull" | "transcription.pull" }>,
  world: World,
  answers: HubAnswers,
): Outcome {
  const answer = answers.get(questionOf(action));
  if (answer?.kind === "refused") return { kind: "fails", failure: answer.failure };
  const kind = action.kind === "voice.pull" ? "synthesis" : "transcription";
  const choice = action.kind === "voice.pull" ? action.voice : action.file;
  const cached = [...world.observed.speech[kind].cached, choice];
  const bytes = answer?.kind === "bytes" ? answer.bytes : null;
  return done(world, speechWith(world.observed, kind, { cached }), bytes);
}

function imported(action: Extract<Action, { kind: "model.import" }>, world: World, now: number): Outcome {
  const { observed } = world;
  const source = observed.sources.get(action.source);
  if (source?.stamp === null) return fails("source_missing", `${source.path} is not there`);
  const stored = ended(observed, action, afterImport(observed, action, now));
  // What is linked takes no disk space.
  const bytes = contentDigest(action.source) === null ? source?.bytes : 0;
  return tooLarge(observed, bytes ?? 0) ?? done(world, stored, bytes ?? null);
}

function removed(action: Extract<Action, { kind: "model.remove" }>, { desired, observed }: World): Outcome {
  const { model, requested, disrupts } = action;
  const removal = requested ? desired.removals.find(({ id }) => id === model) : undefined;
  const after = removal ? afterRemoval(observed, removal) : afterPrune(observed, model);
  if (!after) return fails("model_not_found", `${model} is not in the inventory`);
  const { addedBytes, ...stored } = after;
  const removals = desired.removals.filter((other) => other !== removal);
  const router = routerWithout(observed.router, disrupts);
  const world = { desired: { ...desired, removals }, observed: { ...observed, ...stored, router } };
  return { kind: "done", world, bytes: -addedBytes };
}

/** The model's process has the old files open: it is ended when others take their place. */
function ended(
  { inventory, router }: Observed,
  { model, disrupts, verify }: Extract<Action, { kind: "model.pull" | "model.import" }>,
  { addedBytes: _added, ...stored }: Stored,
): Partial<Observed> {
  const filesIn = (entries: Observed["inventory"]) => entries.find(({ id }) => id === model)?.files ?? [];
  const known = new Set(filesIn(inventory).map(({ blob }) => blob));
  const isSame = verify !== true && filesIn(stored.inventory).every(({ blob }) => known.has(blob));
  return { ...stored, router: isSame ? router : routerWithout(router, disrupts) };
}

/** Refused by the disk, as the pull itself would be; null: there is room. */
function tooLarge({ freeBytes }: Observed, neededBytes: number): Outcome | null {
  const { failure } = fails("disk_full", "the disk is too full");
  return lackingSpace({ neededBytes }, freeBytes) === null ? null : { kind: "fails", failure, neededBytes };
}

function fails(code: ErrorCode, message: string): Extract<Outcome, { kind: "fails" }> {
  return { kind: "fails", failure: failureOf(new GatewayError(code, message)) };
}

function speechWith({ speech }: Observed, kind: SpeechKind, change: Partial<SpeechState>): Pick<Observed, "speech"> {
  return { speech: { ...speech, [kind]: { ...speech[kind], ...change } } };
}
