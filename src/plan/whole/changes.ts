// What an action changes, field by field: from the world before it to the world after it. Pure.
import type { PlanBody } from "../../../schemas/plan.ts";
import { registeredId } from "../../core/ids.ts";
import type { Frozen } from "../../core/json.ts";
import { redactOption } from "../../core/redact.ts";
import type { Action } from "../actions.ts";
import { cachedIn } from "../find-model.ts";
import type { Observed } from "../observed.ts";
import { emptyPreset, ownValues, type PresetFile, parsePreset } from "../preset-file.ts";
import { isKnownCommit } from "./cache-after.ts";
import type { World } from "./outcome.ts";

export type FieldChange = Frozen<PlanBody>["steps"][number]["changes"][number];

type Fields = Readonly<Record<string, string | null>>;

export function changesOf(action: Action, { observed: before }: World, { observed: after }: World): FieldChange[] {
  switch (action.kind) {
    case "model.pull":
    case "model.import":
    case "model.remove":
      return changed(action.model, modelFields(action.model, before), modelFields(action.model, after));
    case "preset.write":
      return presetChanges(presetOf(before), presetOf(after), after);
    case "router.reload":
      return presetChanges(parsePreset(before.router.loadedPreset ?? ""), presetOf(after), after);
    case "router.start":
    case "router.restart":
      return changed("router", { phase: routerPhase(before) }, { phase: routerPhase(after) });
    case "voice.pull":
      return changed("speech/synthesis", { cached: null }, { cached: action.voice });
    case "transcription.pull":
      return changed("speech/transcription", { cached: null }, { cached: action.file });
    case "speech.start":
    case "speech.stop": {
      const choiceIn = ({ speech }: Observed): Fields => ({ choice: speech[action.engine].choice });
      return changed(action.key, choiceIn(before), choiceIn(after));
    }
    case "cache.gc":
      return [];
    default:
      return action satisfies never;
  }
}

function changed(subject: string, before: Fields, after: Fields): FieldChange[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((field) => {
    const [from, to] = [before[field] ?? null, after[field] ?? null];
    return from === to ? [] : { subject, field, from: shown(field, from), to: shown(field, to) };
  });
}

/** Plans are shown to others, as in a comment of CI. */
function shown(field: string, value: string | null): string | null {
  return value === null ? null : redactOption(field, value);
}

function modelFields(id: string, observed: Observed): Fields {
  const cached = cachedIn(observed, id);
  if (!cached) return {};
  const entry = observed.inventory.find((own) => own.id === id);
  return {
    file: cached.files[0]?.replaceAll("\\", "/").split("/").at(-1) ?? null,
    ...(entry?.source
      ? { source: `${entry.source.path} (${entry.source.stamp})` }
      : { revision: entry?.revision ?? null }),
    ...(isKnownCommit(cached.commit) && !entry?.source ? { commit: cached.commit } : {}),
    ...(cached.damage === null ? {} : { damage: cached.damage }),
    ...(cached.complete || cached.damage !== null ? {} : { missing: "a part of it" }),
  };
}

function presetOf({ preset }: Observed): PresetFile {
  return preset.state === "known" ? preset.value : emptyPreset;
}

/** By the models' own ids. */
function presetChanges(before: PresetFile, after: PresetFile, { cache }: Observed): FieldChange[] {
  const names = [...after.sections, ...before.sections].flatMap(({ name }) => name ?? []);
  const models = cache.state === "known" ? cache.value.models : [];
  const ids = new Map(models.map((model) => [registeredId(model.upstreamId), model.id]));
  return [...new Map(names.map((name) => [registeredId(name), name]))].flatMap(([registered, name]) => {
    const subject = name === "*" ? "[*]" : (ids.get(registered) ?? name);
    return changed(subject, Object.fromEntries(ownValues(before, name)), Object.fromEntries(ownValues(after, name)));
  });
}

function routerPhase({ router }: Observed): string {
  return router.silentSince === null ? router.phase : "silent";
}
