// The end of an import: prints the models as a document, or adds them to gateway.yaml.
import { GatewayError } from "../../core/errors.ts";
import { documentBounds } from "../../desired/document/bounds.ts";
import { type DocumentTree, emptyTree, toInput } from "../../desired/document/document.ts";
import { editText } from "../../desired/document/edit-text.ts";
import { parseBytes } from "../../desired/document/parse.ts";
import { formatPath } from "../../desired/document/problem.ts";
import { validateDocument } from "../../desired/document/validate.ts";
import { renderDocument } from "../../desired/render.ts";
import { replaceFile } from "../../desired/replace-file.ts";
import { type Imported, type ImportedModel, type Remark, withSideFiles } from "../../import/imported.ts";
import { type Merged, merge } from "../../import/merge.ts";
import type { CommandLine, Settings } from "../../settings/settings.ts";
import { readBytesIfPresent } from "../../state/atomic-file.ts";
import { problemLines } from "../document-file.ts";
import { writeNew } from "../new-file.ts";
import { printJson } from "../text.ts";
import { linkSideFiles } from "./side-files.ts";

/** `file`: what lines of remarks are of. Exit code 1 where nothing can be taken over. */
export async function addModels(
  { settings, flags, json }: CommandLine,
  imported: Imported,
  file: string | null,
): Promise<number> {
  const { configPath } = settings;
  const isWriting = flags.includes("write");
  const bytes = await readBytesIfPresent(configPath);
  const parsed = bytes === null ? ({ ok: true, tree: emptyTree } as const) : parseBytes(bytes, settings.presetAllow);
  if (!parsed.ok) {
    for (const line of problemLines(configPath, parsed)) console.error(line);
    return 1;
  }
  const whole = merge(parsed.tree, imported.models.map(withSideFiles));
  requireValid(whole.tree, settings);
  const isWritten = isWriting && whole.added.length > 0;
  // A text that cannot be had leaves no links.
  if (isWritten) newText(bytes, whole.tree, settings);
  const added = imported.models.filter(({ model }) => whole.added.includes(model.id));
  const linked = isWritten
    ? await linkSideFiles(added, configPath)
    : { models: added, remarks: added.flatMap(linksToCome) };
  const merged = merge(parsed.tree, linked.models.map(withSideFiles));
  if (isWritten) await write(bytes, newText(bytes, merged.tree, settings), configPath);
  const document = toInput(addedOf(merged));
  const remarks = [...imported.remarks, ...linked.remarks, ...whole.remarks];
  if (json) printJson({ written: isWritten, document, remarks });
  else {
    if (!isWriting && merged.added.length > 0) process.stdout.write(renderDocument(document));
    for (const remark of remarks) console.error(remarkText(remark, file));
    console.error(summary(merged.added.length, isWriting, settings));
  }
  return imported.models.length === 0 ? 1 : 0;
}

/** The new models alone. */
function addedOf({ tree, added }: Merged): DocumentTree {
  const models = Object.entries(tree["models"] ?? {}).filter(([id]) => added.includes(id));
  return { version: 1, models: Object.fromEntries(models) };
}

function requireValid(tree: DocumentTree, { presetAllow }: Settings): void {
  const validation = validateDocument(toInput(tree), presetAllow);
  if (validation.ok) return;
  const [problem] = validation.problems;
  const why = problem ? `${formatPath(problem.path)}: ${problem.message}` : "it would be invalid";
  throw new GatewayError("invalid_document", `the document cannot take these models: ${why}`);
}

function linksToCome({ name, beside }: ImportedModel): Remark[] {
  return beside.map((file) => ({ about: name, message: `--write makes ./${file.name} a hard link to ${file.path}` }));
}

/** Errors: `invalid_document` for a file whose text cannot be edited. */
function newText(bytes: Buffer | null, tree: DocumentTree, { configPath, presetAllow }: Settings): string {
  if (bytes === null) return renderDocument(toInput(tree));
  const text = editText(bytes.toString("utf8"), tree, presetAllow);
  if (text !== null && Buffer.byteLength(text) <= documentBounds.bytes) return text;
  throw new GatewayError(
    "invalid_document",
    `${configPath} cannot be edited, as none with aliases can: add by hand what this prints without --write`,
  );
}

async function write(bytes: Buffer | null, text: string, configPath: string): Promise<void> {
  if (bytes === null) return writeNew(configPath, text);
  if (!(await replaceFile(configPath, bytes, text)))
    throw new GatewayError("invalid_request", `${configPath} was saved meanwhile: repeat this`);
}

function remarkText({ about, line, message }: Remark, file: string | null): string {
  return `${line === undefined || file === null ? "" : `${file}:${line}: `}${about}: ${message}`;
}

function summary(count: number, isWriting: boolean, { configPath, command }: Settings): string {
  const models = `${count} model${count === 1 ? "" : "s"}`;
  if (count === 0) return `Nothing to add to ${configPath}.`;
  if (!isWriting) return `${models}; nothing is changed yet: --write adds them to ${configPath}.`;
  return `${models} added to ${configPath}. A running gateway takes them at once: \`${command("status")}\`; else \`${command("serve")}\`.`;
}
