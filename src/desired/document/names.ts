// A name means one model, or one variant of it: ids, aliases and names of variants are unique. Pure.
import { foldName } from "../../core/ids.ts";
import { isJsonObject } from "../../core/json.ts";
import { listIn, type Problem } from "./problem.ts";

interface Name {
  readonly name: string;
  readonly path: Problem["path"];
  readonly isVariant: boolean;
}

/** `ids`: of these models, by their indexes. */
export function nameProblems(models: readonly unknown[], ids: readonly unknown[]): Problem[] {
  const byId = firstIndexes(ids, foldName);
  const first = new Map<string, number>();
  return models.flatMap((entry, index): Problem[] =>
    namesIn(entry, index).flatMap(({ name, path, isVariant }): Problem[] => {
      const folded = foldName(name);
      const other = byId.get(folded);
      // An alias of its own id changes nothing; a variant would take the model's plain name.
      if (other !== undefined && (other !== index || isVariant))
        return [{ path, message: `${name} is the id of the model at index ${other}` }];
      const earlier = first.get(folded);
      first.set(folded, earlier ?? index);
      return earlier === undefined
        ? []
        : [{ path, message: `${name} is already a name of the model at index ${earlier}` }];
    }),
  );
}

function namesIn(entry: unknown, index: number): readonly Name[] {
  const path = ["models", index] as const;
  const nameAt = (name: unknown, isVariant: boolean, ...at: Problem["path"]): Name[] =>
    typeof name === "string" ? [{ name, path: [...path, ...at], isVariant }] : [];
  return [
    ...listIn(entry, "aliases").flatMap((alias, at) => nameAt(alias, false, "aliases", at)),
    ...listIn(entry, "variants").flatMap((variant, at) =>
      nameAt(isJsonObject(variant) ? variant["name"] : undefined, true, "variants", at, "name"),
    ),
  ];
}

export function firstIndexes(names: readonly unknown[], fold: (name: string) => string): Map<string, number> {
  const entries = names.flatMap((name, index) => (typeof name === "string" ? [[fold(name), index] as const] : []));
  return new Map(entries.reverse());
}
