// A document that is named on the command line: a file, or standard input.
import { GatewayError, systemCode } from "../core/errors.ts";
import { documentBounds } from "../desired/document/bounds.ts";
import type { DocumentTree } from "../desired/document/document.ts";
import { parseBytes, type SourceProblem } from "../desired/document/parse.ts";
import type { Settings } from "../settings/settings.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";

export interface DocumentFile {
  /** For messages. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** `-` is standard input. Errors: `invalid_request`. */
export async function readDocumentFile(path: string): Promise<DocumentFile> {
  if (path === "-") return { name: "<stdin>", bytes: await readInput() };
  const bytes = await readBytesIfPresent(path).catch((error: unknown) => {
    throw new GatewayError("invalid_request", `${path} cannot be read (${systemCode(error) ?? String(error)})`, {
      cause: error,
    });
  });
  if (bytes === null) throw new GatewayError("invalid_request", `there is no ${path}`);
  return { name: path, bytes };
}

/** To its end, or until it is too long for a document. */
async function readInput(): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    parts.push(part);
    length += part.length;
    if (length > documentBounds.bytes) break;
  }
  return Buffer.concat(parts);
}

/** The document that a file holds. Errors: `invalid_document`, after every problem was printed. */
export function requireValid({ name, bytes }: DocumentFile, { presetAllow }: Settings): DocumentTree {
  const parsed = parseBytes(bytes, presetAllow);
  if (parsed.ok) return parsed.tree;
  const [first, ...others] = problemLines(name, parsed);
  const rest = others.length > 0 ? `\n${others.join("\n")}` : "";
  throw new GatewayError("invalid_document", `${first}${rest}`);
}

/** Every problem as FILE:LINE:COLUMN, as editors and CI read it. */
export function problemLines(
  name: string,
  { problems, more }: { readonly problems: readonly SourceProblem[]; readonly more: number },
): string[] {
  return [
    ...problems.map(
      ({ line, column, path, message }) => `${name}:${line}:${column}: ${path ? `${path}: ` : ""}${message}`,
    ),
    ...(more > 0 ? [`${name}: and ${more} more problems`] : []),
  ];
}
