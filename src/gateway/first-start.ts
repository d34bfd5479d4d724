// What the first start finds nothing of and writes: the commented document and the starter model that it declares.
import { access } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { systemCode } from "../core/errors.ts";
import type { OwnCommand } from "../core/own-command.ts";
import { writeAtomic } from "../desired/atomic-file.ts";
import { makeFolder } from "../desired/folder.ts";
import { firstDocument } from "../starter/first-document.ts";
import { starterFileName, starterModel } from "../starter/starter-model.ts";

/** Whether it did. A file that was applied once and is gone is not written again: it vanished, and that is told. */
export async function writeFirstDocument(
  configPath: string,
  schemaPath: string,
  appliedBefore: boolean,
  command: OwnCommand,
): Promise<boolean> {
  const exists = await access(configPath).then(
    () => true,
    (error: unknown) => systemCode(error) !== "ENOENT",
  );
  if (exists || appliedBefore) return false;
  const folder = dirname(configPath);
  await makeFolder(folder);
  await writeAtomic(join(folder, starterFileName), starterModel().bytes);
  await writeAtomic(configPath, firstDocument(relative(folder, schemaPath), command));
  return true;
}
