// A configuration of llama-swap as models of a document. Entries that run one file with equal settings of the process become one
// model: their names are its aliases, or its variants where requests get settings.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import type { DesiredModel, Variant } from "../desired/document/document.ts";
import { variantProblems } from "../desired/document/variants.ts";
import type { Imported, ImportedModel, Remark } from "./imported.ts";
import { unused } from "./naming.ts";
import { splitPreset } from "./server-command.ts";
import type { SwapConfig } from "./swap-config.ts";
import { type SwapEntry, type SwapSurroundings, swapEntry } from "./swap-entry.ts";
import { fileLosses } from "./swap-losses.ts";
import { routingRemarks } from "./swap-routing.ts";

const readKeys = ["models", "macros", "globalTTL", "groups", "routing"];

export function llamaSwapModels(config: SwapConfig, around: SwapSurroundings): Imported {
  const { value, lineOf } = config;
  const remarks: Remark[] = [];
  for (const key of Object.keys(value).filter((each) => !readKeys.includes(each)))
    remarks.push({
      about: key,
      line: lineOf([key]),
      message: `has no counterpart: ${fileLosses[key] ?? "it is not known"}`,
    });
  for (const [path, message] of routingRemarks(value))
    remarks.push({ about: path.join("."), line: lineOf(path), message });
  const names = isJsonObject(value["models"]) ? Object.keys(value["models"]) : [];
  const entries = names.flatMap((name) => swapEntry(name, config, around, remarks) ?? []);
  const taken = new Set<string>();
  const models: ImportedModel[] = [];
  for (const group of groupsOf(entries)) {
    const [{ name, command }] = group;
    const { id, source } = command.file;
    if (source === undefined && taken.has(id.toLowerCase())) {
      const message = `is not taken over: ${id} is a model already, with other settings of its process`;
      remarks.push({ about: group.map((each) => each.name).join(", "), line: lineOf(["models", name]), message });
      continue;
    }
    const own = unused(id, taken, name);
    taken.add(own.toLowerCase());
    models.push(
      modelOf(own, group, (message) => remarks.push({ about: name, line: lineOf(["models", name]), message })),
    );
  }
  return { models: [...models, ...draftModels(entries, taken)], remarks };
}

type Group = readonly [SwapEntry, ...SwapEntry[]];

/** By what the process is given. */
function groupsOf(entries: readonly SwapEntry[]): Group[] {
  const groups = new Map<string, Group>();
  for (const entry of entries) {
    const { file, draft, ctxSize, preset, beside } = entry.command;
    const key = JSON.stringify([file, draft, ctxSize, splitPreset(preset).others, beside]);
    const known = groups.get(key);
    groups.set(key, known ? [...known, entry] : [entry]);
  }
  return [...groups.values()];
}

function modelOf(id: string, group: Group, note: (message: string) => void): ImportedModel {
  const [{ name, command, rest }] = group;
  const { file, draft, ctxSize, beside } = command;
  // Alone in its process it keeps all settings there: any name of it gets them.
  const isAlone = group.length === 1;
  const preset = isAlone ? command.preset : splitPreset(command.preset).others;
  const aliases: string[] = [];
  const variants: Variant[] = [];
  for (const entry of group) {
    const set = isAlone ? {} : splitPreset(entry.command.preset).set;
    for (const [each, forced] of entry.forced) {
      const variant = variantOf(each, set, forced, note);
      if (variant) variants.push(variant);
      else aliases.push(each);
    }
  }
  const model: DesiredModel = {
    id,
    ...(file.source === undefined ? {} : { source: file.source }),
    ...(ctxSize === null ? {} : { ctxSize }),
    ...rest,
    ...(aliases.length > 0 ? { aliases } : {}),
    ...(variants.length > 0 ? { variants } : {}),
    ...(draft === null ? {} : { draft: draft.id }),
    ...(Object.keys(preset).length > 0 ? { preset } : {}),
  };
  const stem = id.replaceAll(/[/:]/g, "-");
  const ending = { mmproj: "-mmproj.gguf", chatTemplate: ".jinja", lora: "-lora.gguf" };
  const named = beside.map((each, index) => ({ ...each, name: `${stem}-${index + 1}${ending[each.field]}` }));
  return { name, model, beside: named };
}

/** Null where it would set nothing. */
function variantOf(
  name: string,
  defaults: JsonObject,
  forced: JsonObject,
  note: (message: string) => void,
): Variant | null {
  const set: JsonObject = { ...defaults, ...forced };
  const faults = new Set<string>();
  for (const { path, message } of variantProblems([{ variants: [{ name, set }] }])) {
    faults.add(String(path.at(-1)));
    note(`${name} does not set ${String(path.at(-1))}: ${message}`);
  }
  const fit = Object.fromEntries(Object.entries(set).filter(([member]) => !faults.has(member)));
  if (Object.keys(fit).length === 0) return null;
  const force = Object.keys(forced).filter((member) => Object.hasOwn(fit, member));
  return { name, set: fit, ...(force.length > 0 ? { force } : {}) };
}

/** A draft model is a model of the document too. */
function draftModels(entries: readonly SwapEntry[], taken: Set<string>): ImportedModel[] {
  return entries.flatMap(({ name, command: { draft } }) => {
    if (draft === null || taken.has(draft.id.toLowerCase())) return [];
    taken.add(draft.id.toLowerCase());
    return [{ name, model: draft, beside: [] }];
  });
}
