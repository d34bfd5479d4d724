// One model of a llama-swap configuration: its names, its command, and what requests for it get.
import { isJsonObject, type Json, type JsonObject } from "../core/json.ts";
import type { DesiredModel } from "../desired/document/document.ts";
import { withoutComments } from "./command-words.ts";
import type { Remark } from "./imported.ts";
import { isName } from "./naming.ts";
import { type CommandSurroundings, type ServerCommand, serverCommand } from "./server-command.ts";
import { expanded, type SwapConfig, textOf } from "./swap-config.ts";
import { modelLosses } from "./swap-losses.ts";
import { persistentMembers, priorityOf } from "./swap-routing.ts";

export interface SwapEntry {
  readonly name: string;
  /** All, its own first. */
  readonly names: readonly string[];
  readonly command: ServerCommand;
  /** What replaces members of requests, by name; each with those for all names. */
  readonly forced: ReadonlyMap<string, JsonObject>;
  readonly rest: Pick<DesiredModel, "keepAlive" | "maxQueue" | "priority" | "pinned">;
}

export interface SwapSurroundings extends CommandSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const readKeys = ["cmd", "macros", "aliases", "ttl", "filters", "concurrencyLimit"];

/** Null, with a remark, for one that cannot be had here. */
export function swapEntry(
  name: string,
  config: SwapConfig,
  around: SwapSurroundings,
  remarks: Remark[],
): SwapEntry | null {
  const { value, lineOf, lineWith } = config;
  const { environment } = around;
  const note = (message: string, line: number): null => {
    remarks.push({ about: name, line, message });
    return null;
  };
  const here = ["models", name];
  const raw = objectOf(objectOf(value["models"])[name]);
  const unknown = new Set<string>();
  const own: readonly [string, Json][] = [
    ["MODEL_ID", name],
    ["PORT", 0],
    ["PID", 0],
  ];
  const macros = new Map([
    ...Object.entries(objectOf(value["macros"])),
    ...Object.entries(objectOf(raw["macros"])),
    ...own,
  ]);
  const read = (key: string): Json =>
    raw[key] === undefined ? null : expanded(raw[key], macros, environment, unknown);
  const cmd = expanded(withoutComments(textOf(raw["cmd"])), macros, environment, unknown);
  const filters = objectOf(read("filters"));
  const aliases = [read("aliases") ?? []].flat().map((alias) => textOf(isJsonObject(alias) ? alias["id"] : alias));
  const [ttl, limit] = [read("ttl"), read("concurrencyLimit")];
  if (unknown.size > 0)
    return note(`is not taken over: \${${[...unknown].join("}, ${")}} is not defined`, lineOf([...here, "cmd"]));
  const command = serverCommand(textOf(cmd), around);
  if (typeof command === "string") return note(`is not taken over: it ${command}`, lineOf([...here, "cmd"]));
  for (const { flag, message } of command.losses) note(message, lineWith([...here, "cmd"], flag));
  for (const key of Object.keys(raw).filter((each) => !readKeys.includes(each)))
    note(`${key} has no counterpart: ${modelLosses[key] ?? "it is not known"}`, lineOf([...here, key]));
  for (const key of ["stripParams", "strip_params"].filter((each) => (filters[each] ?? "") !== ""))
    note(`${key} has no counterpart: list the members in a variant's \`force\``, lineOf([...here, "filters", key]));
  const byName = objectOf(filters["setParamsByID"]);
  const all = [...new Set([name, ...aliases, ...command.aliases, ...Object.keys(byName)])];
  for (const other of all.filter((each) => !isName(each)))
    note(`the name ${JSON.stringify(other)} is none that a document can have`, lineOf(here));
  const names = all.filter(isName);
  const forAll = objectOf(filters["setParams"]);
  return {
    name,
    names,
    command,
    forced: new Map(names.map((each) => [each, { ...forAll, ...objectOf(byName[each]) }])),
    rest: {
      ...keepAliveOf(ttl, value["globalTTL"]),
      ...(typeof limit === "number" && limit > 0 ? { maxQueue: limit } : {}),
      ...(priorityOf(value, name) === undefined ? {} : { priority: priorityOf(value, name) as number }),
      ...(persistentMembers(value).has(name) ? { pinned: true } : {}),
    },
  };
}

/** 0 is for ever, and -1 the one for all. */
function keepAliveOf(ttl: Json, globalTtl: Json | undefined): Pick<DesiredModel, "keepAlive"> {
  const seconds = typeof ttl === "number" && ttl >= 0 ? ttl : globalTtl;
  if (typeof seconds !== "number" || seconds < 0) return {};
  return seconds === 0 ? { keepAlive: -1 } : { keepAlive: seconds };
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
