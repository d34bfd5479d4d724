// `validate FILE… | -`: every problem with its place and what to do.
import { resolve } from "node:path";
import { toDesired } from "../desired/document/document.ts";
import { locateIn, type Parsed, parseBytes, type SourceProblem } from "../desired/document/parse.ts";
import type { CommandLine } from "../settings/settings.ts";
import { type EngineHere, findEngine, problemsHere } from "./checks-here.ts";
import { type DocumentFile, problemLines, readDocumentFile } from "./document-file.ts";
import { printJson } from "./text.ts";

interface ReadDocument extends DocumentFile {
  readonly parsed: Parsed;
}

interface Verdict {
  readonly file: string;
  readonly valid: boolean;
  readonly problems: readonly SourceProblem[];
  /** Problems beyond those. */
  readonly more: number;
}

export async function validateCommand({ operands, settings, json }: CommandLine): Promise<number> {
  const read = async (path: string): Promise<ReadDocument> => {
    const file = await readDocumentFile(path);
    return { ...file, parsed: parseBytes(file.bytes, settings.presetAllow) };
  };
  // The engine prints its options meanwhile.
  const [engine, ...files] = await Promise.all([findEngine(settings), ...operands.map(read)]);
  const verdicts = await Promise.all(files.map((file) => verdictOf(file, engine)));
  const valid = verdicts.every((verdict) => verdict.valid);
  if (json) printJson({ valid, engine: engine?.path ?? null, files: verdicts });
  else for (const verdict of verdicts) printVerdict(verdict, engine);
  return valid ? 0 : 1;
}

async function verdictOf({ name, bytes, parsed }: ReadDocument, engine: EngineHere | null): Promise<Verdict> {
  if (!parsed.ok) return { file: name, valid: false, problems: parsed.problems, more: parsed.more };
  // What comes in by standard input has its files in the working folder.
  const found = await problemsHere(resolve(name), toDesired(parsed.tree), engine);
  const problems = locateIn(bytes.toString("utf8"), found);
  return { file: name, valid: problems.length === 0, problems, more: 0 };
}

function printVerdict({ file, valid, ...problems }: Verdict, engine: EngineHere | null): void {
  if (valid) console.log(`${file} is valid${engine ? "" : "; no llama-server is here to check its options by"}`);
  for (const line of problemLines(file, problems)) console.error(line);
}
