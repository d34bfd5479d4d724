// `diff -f FILE|-`: the fields in which a document differs from that of the running gateway.
import type { Desired } from "../client/index.ts";
import { equalJson, type Json } from "../core/json.ts";
import { type Change, listChanges } from "../core/merge-patch.ts";
import { toTree } from "../desired/document/document.ts";
import { formatPath } from "../desired/document/problem.ts";
import { redactChange } from "../desired/history/entries.ts";
import type { CommandLine } from "../settings/settings.ts";
import { type Color, paintFor } from "./colors.ts";
import { withGateway } from "./connect.ts";
import { givenDocument, parseDocumentFile, unlessInvalid } from "./document-file.ts";
import { type DiffLine, fieldDiff } from "./field-diff.ts";
import { printJson } from "./text.ts";

/** Exit code 2: they differ. */
export async function diffCommand({ settings, json, given }: CommandLine): Promise<number> {
  const file = await givenDocument(given("file"));
  const tree = await unlessInvalid(file, () => parseDocumentFile(file));
  if (tree === null) return 1;
  const current = await withGateway({ settings }, (client) => client.desired.get());
  const changes = listChanges(toTree(current.document), tree).map((change) => {
    const setBy = setByCall(change, current);
    return { ...redactChange(change), setBy, note: setBy === null ? undefined : `set by ${setBy}, which apply leaves` };
  });
  if (json)
    printJson({
      generation: current.generation,
      changes: changes.map(({ path, before, after, setBy }) => ({
        path: formatPath(path),
        from: before ?? null,
        to: after ?? null,
        setBy,
      })),
    });
  else if (changes.length === 0) console.log(`${file.name} is the document of the gateway.`);
  else printLines(fieldDiff(changes));
  return changes.length > 0 ? 2 : 0;
}

/** Who has set a field that the file has as the applied one: it was not changed there, so an apply does not change it. */
function setByCall({ path, after }: Change, { differsFromFile }: Desired): string | null {
  const name = formatPath(path);
  const found = differsFromFile.find((difference) => difference.path === name);
  return found && equalJson((found.file ?? null) as Json, after ?? null) ? found.setBy : null;
}

const colors: Readonly<Record<DiffLine["sign"], Color>> = { "+": "green", "-": "red", "~": "yellow", " ": "dim" };

function printLines(lines: readonly DiffLine[]): void {
  const paint = paintFor(process.stdout);
  for (const { sign, text } of lines) console.log(paint(colors[sign], `${sign} ${text}`));
}
