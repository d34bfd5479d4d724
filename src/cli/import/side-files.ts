// Files that gateway.yaml may name only beside it: hard links to where the other program has them.
import { link, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { reasonOf, systemCode } from "../../core/errors.ts";
import type { ImportedModel, Remark, SideFile } from "../../import/imported.ts";
import { makeFolder } from "../../state/folder.ts";

/** Makes the folder too. Without the files that cannot be linked, each with a remark. */
export async function linkSideFiles(
  models: readonly ImportedModel[],
  configPath: string,
): Promise<{ readonly models: readonly ImportedModel[]; readonly remarks: readonly Remark[] }> {
  await makeFolder(dirname(configPath));
  const remarks: Remark[] = [];
  const linked: ImportedModel[] = [];
  for (const each of models) {
    const beside: SideFile[] = [];
    for (const file of each.beside) {
      const place = join(dirname(configPath), file.name);
      const fault = await linkFault(file.path, place);
      if (fault === null) beside.push(file);
      else
        remarks.push({
          about: each.name,
          message: `${file.field} is left out, as ${fault}: copy ${file.path} to ${place} and add \`${file.field}\` to ${each.model.id}`,
        });
    }
    linked.push({ ...each, beside });
  }
  return { models: linked, remarks };
}

/** Why there is no link; null where there is one. */
async function linkFault(from: string, to: string): Promise<string | null> {
  try {
    await link(from, to);
    return null;
  } catch (error) {
    if (systemCode(error) !== "EEXIST") return `no hard link to it can be made (${reasonOf(error)})`;
    const [own, other] = await Promise.all([stat(from), stat(to)]);
    return own.ino === other.ino && own.dev === other.dev ? null : "another file has its name";
  }
}
