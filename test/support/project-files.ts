// The project's own files, without what is installed, built or written at run time.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/settings/settings.ts";

const foreign = new Set(["node_modules", "dist", ".git"]);

/** Paths from the project's root, with `/`. Of the state folder only its page is part of the project. */
export function projectFiles(folder = ""): string[] {
  return readdirSync(join(packageRoot, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (foreign.has(entry.name) || (folder === "state" && entry.name !== "README.md")) return [];
    if (entry.isDirectory()) return projectFiles(path);
    return entry.isFile() && !entry.name.endsWith(".log") ? [path] : [];
  });
}

export function readProjectFile(path: string): string {
  return readFileSync(join(packageRoot, path), "utf8");
}
