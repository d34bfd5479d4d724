// What the first start finds nothing of and writes: the commented document and the starter model that it declares.
import { access } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import { systemCode } from "../core/errors.ts";
import { packageRoot, type Settings } from "../settings/settings.ts";
import { firstDocument } from "../starter/first-document.ts";
import { starterFileName, starterModel } from "../starter/starter-model.ts";
import { writeAtomic } from "../state/atomic-file.ts";
import { makeFolder } from "../state/folder.ts";

/** A file that was applied once and is gone is not written again: it vanished, and that is told. */
export async function writeFirstDocument(
  { configPath, command }: Settings,
  appliedBefore: boolean,
  logger: FastifyBaseLogger,
): Promise<void> {
  const exists = await access(configPath).then(
    () => true,
    (error: unknown) => systemCode(error) !== "ENOENT",
  );
  if (exists || appliedBefore) return;
  const folder = dirname(configPath);
  await makeFolder(folder);
  await writeAtomic(join(folder, starterFileName), starterModel());
  const schema = join(packageRoot, "schemas", "gateway.schema.json");
  await writeAtomic(configPath, firstDocument(relative(folder, schema), command));
  logger.info({ path: configPath }, "wrote a first document, with a starter model");
}
