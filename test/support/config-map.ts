// A folder as kubelet mounts a ConfigMap: each file a link through `..data`, which one rename moves to the next version of all of them.
import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

type Files = Readonly<Record<string, string>>;

interface ConfigMap {
  /** In kubelet's order: the new version, the swap, links of new files, no links of old ones, no old version. */
  update(files: Files): Promise<void>;
}

/** Resolves when the first version is there. */
export async function mountConfigMap(folder: string, files: Files): Promise<ConfigMap> {
  let version = 0;
  const nameOf = (of: number): string => `..2026_01_01_00_00_00.${String(of).padStart(9, "0")}`;

  async function update(next: Files): Promise<void> {
    const name = nameOf(++version);
    await mkdir(join(folder, name), { recursive: true });
    for (const [file, text] of Object.entries(next)) await writeFile(join(folder, name, file), text);
    await symlink(name, join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
    const links = (await readdir(folder)).filter((entry) => !entry.startsWith(".."));
    for (const file of Object.keys(next))
      if (!links.includes(file)) await symlink(join("..data", file), join(folder, file));
    for (const file of links) if (!(file in next)) await rm(join(folder, file));
    await rm(join(folder, nameOf(version - 1)), { recursive: true, force: true });
  }

  await update(files);
  return { update };
}
