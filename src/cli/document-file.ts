// A document that is named on the command line: a file, or standard input.
import { GatewayError, reasonOf } from "../core/errors.ts";
import { anyAllowed } from "../core/preset-keys.ts";
import { documentBounds } from "../desired/document/bounds.ts";
import type { DocumentTree } from "../desired/document/document.ts";
import { parseBytes, type SourceProblem } from "../desired/document/parse.ts";
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
    throw new GatewayError("invalid_request", `${path} cannot be read (${reasonOf(error)})`, {
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

/**
 * The document of `-f`, for a gateway that has the last word on the options it allows; null where it is none, and every problem
 * is printed. Errors: `invalid_request`.
 */
export async function givenDocument(
  path: string | undefined,
): Promise<(DocumentFile & { readonly tree: DocumentTree }) | null> {
  if (path === undefined)
    throw new GatewayError("invalid_request", "name the document with -f FILE; - is standard input");
  const file = await readDocumentFile(path);
  const parsed = parseBytes(file.bytes, anyAllowed);
  if (parsed.ok) return { ...file, tree: parsed.tree };
  for (const line of problemLines(file.name, parsed)) console.error(line);
  return null;
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
