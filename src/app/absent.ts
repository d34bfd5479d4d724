// Why a model that somebody asks for is not here, although it was named: in the document, or in the file.
import { matchName, normaliseName } from "../core/ids.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { StatusReport } from "../status/report.ts";

/** What is the matter with a model that the document names and the cache lacks; null for one that it does not name. */
export function absentReason({ models }: StatusReport, name: string): string | null {
  const desired = models.filter((model) => model.desired);
  const match = matchName(
    name,
    desired.map(({ id }) => ({ id, aliases: [] })),
  );
  if (match.kind !== "found") return null;
  const present = desired
    .find((model) => model.id === match.id)
    ?.conditions.find((condition) => condition.type === "Present");
  return present && present.status !== "True" ? `is in the document but not here yet: ${present.message}` : null;
}

/** That a call took a model out which the file still names: an edit of the file elsewhere does not bring it back. */
export function takenOut(store: DesiredStore, name: string): string | null {
  const id = normaliseName(name);
  const named = store.current().document.models.some((model) => model.id === id);
  if (named || store.inFile(id) === undefined) return null;
  const difference = store.differencesFromFile().find(({ path, desired }) => desired === null && path.includes(id));
  const by = difference?.setBy ?? "a call of the API";
  return `is in gateway.yaml, but was taken out of the document by ${by}: pull it, and it comes back as the file has it`;
}
