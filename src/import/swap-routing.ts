// What llama-swap's groups and priorities mean here: pinned models, and who gets a model slot first.
import { isJsonObject, type Json, type JsonObject } from "../core/json.ts";

/** The first that is an object. */
function objectAt(value: JsonObject, ...paths: readonly (readonly string[])[]): JsonObject {
  for (const path of paths) {
    let found: Json | undefined = value;
    for (const key of path) found = isJsonObject(found) ? found[key] : undefined;
    if (isJsonObject(found)) return found;
  }
  return {};
}

const groupsPath = ["routing", "router", "settings", "groups"];
const schedulerPath = ["routing", "scheduler", "settings", "fifo", "priority"];

/** Models that no other one unloads. */
export function persistentMembers(value: JsonObject): ReadonlySet<string> {
  const groups = Object.values(objectAt(value, ["groups"], groupsPath));
  return new Set(
    groups.flatMap((group) => {
      const members = isJsonObject(group) && group["persistent"] === true ? group["members"] : [];
      return Array.isArray(members) ? members.map(String) : [];
    }),
  );
}

/** From -10 to 10; undefined: none. */
export function priorityOf(value: JsonObject, model: string): number | undefined {
  const priority = objectAt(value, schedulerPath)[model];
  return typeof priority === "number" ? Math.max(-10, Math.min(10, Math.trunc(priority))) : undefined;
}

/** Of each place in the file what it becomes. */
export function routingRemarks(value: JsonObject): readonly (readonly [path: readonly string[], message: string])[] {
  const beside = "models are loaded beside each other as far as memory and --models-max allow";
  const paths = [["groups"], groupsPath].filter((path) => Object.keys(objectAt(value, path)).length > 0);
  const matrix = ["routing", "router", "settings", "matrix"];
  return [
    ...paths.map((path) => [path, `${beside}; members of a persistent group are pinned`] as const),
    ...(Object.keys(objectAt(value, matrix)).length > 0 ? [[matrix, `has no counterpart: ${beside}`] as const] : []),
  ];
}
