// The one line of a process's output that names the failure. Goes into responses, so it has no traceback, and of a path only the
// file name: clients of speech need no license key. Pure.

const limit = 300;
/** Frames of a stack, and what Node prints below one. */
const noise = /^(?:\s|Traceback |at |File "|Node\.js v|node:)/;
const failure =
  /error|exception|fail|unable|cannot|can't|could not|invalid|unknown|missing|not found|no such|does not|denied|refused|in use|too many|terminat|abort/i;
const quotedPath = /(["'`])(?:file:\/\/)?(?:[A-Za-z]:)?[\\/][^"'`\n]*?([^\\/"'`\n]+)\1/g;
const barePath = /(?<![\w.:/\\])(?:file:\/\/)?(?:[A-Za-z]:)?(?:[\\/][^\s\\/"'`,;:()]+)+[\\/]?/g;

/** The last line that names a failure, else the last one; empty where there is none. */
export function errorLine(output: string): string {
  const lines = output.split(/\r?\n/).filter((line) => line.trim() !== "" && !noise.test(line));
  const line = lines.findLast((each) => failure.test(each)) ?? lines.at(-1) ?? "";
  return withoutPaths(line.trim()).slice(0, limit);
}

function withoutPaths(line: string): string {
  return line.replace(quotedPath, "$1$2$1").replace(barePath, (path) => path.split(/[\\/]/).findLast(Boolean) ?? "");
}
