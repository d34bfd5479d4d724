// Keeps the program's compiled code between two runs, where Node can (22.1): a command's start is mostly compiling.
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/** In a folder of this user's own: what lies there is run. */
export function keepCompiled({ NODE_COMPILE_CACHE: named, XDG_CACHE_HOME: caches, HOME: home } = process.env): void {
  const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown };
  enableCompileCache?.(named || join(caches || join(home || homedir(), ".cache"), "model-gateway", "compiled"));
}
