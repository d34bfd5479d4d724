// README.md and the pages of docs/: their text, code blocks and tables.
import { projectFiles, readProjectFile } from "./project-files.ts";

/** Text by path, README.md first. */
export function docPages(): ReadonlyMap<string, string> {
  const paths = ["README.md", ...projectFiles("docs").filter((path) => path.endsWith(".md"))];
  return new Map(paths.map((path) => [path, readProjectFile(path)]));
}

export interface CodeBlock {
  readonly page: string;
  readonly code: string;
}

/** The fenced blocks of one language, in the order of the pages. */
export function codeBlocks(language: string): CodeBlock[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm");
  return [...docPages()].flatMap(([page, text]) =>
    [...text.matchAll(fence)].map((match) => ({ page, code: match[1] ?? "" })),
  );
}
