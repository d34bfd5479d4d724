// Keeps the program's compiled code between two runs, where Node can (22.1): a command's start is mostly compiling.
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/** In a folder of this user's own: what lies there is run. NODE_COMPILE_CACHE wins, by Node itself. */
export function keepCompiled(): void {
  const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown };
  enableCompileCache?.(join(homedir(), ".cache", "model-gateway", "compiled"));
}
