// A document that is named on the command line: a file, or standard input.
import { GatewayError, reasonOf, toGatewayError } from "../core/errors.ts";
import { anyAllowed } from "../core/preset-keys.ts";
import { type Problem, problemsIn } from "../core/problem-places.ts";
import { documentBounds } from "../desired/document/bounds.ts";
import type { DocumentTree } from "../desired/document/document.ts";
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

/** The file of `-f`. Errors: `invalid_request`. */
export async function givenDocument(path: string | undefined): Promise<DocumentFile> {
  if (path === undefined)
    throw new GatewayError("invalid_request", "name the document with -f FILE; - is standard input");
  return readDocumentFile(path);
}

/** For a gateway that has the last word on the options it allows. Errors: `invalid_document`. */
export async function parseDocumentFile({ bytes }: DocumentFile): Promise<DocumentTree> {
  // The parser takes as long to load as all the rest, and a running gateway has it.
  const { parseBytes, requireValid } = await import("../desired/document/parse.ts");
  return requireValid(parseBytes(bytes, anyAllowed));
}

/** Null where the work finds the document invalid: every problem is printed. */
export async function unlessInvalid<T>({ name }: DocumentFile, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const { code, message } = toGatewayError(error);
    const problems = code === "invalid_document" ? problemsIn(message) : [];
    if (problems.length === 0) throw error;
    for (const line of problemLines(name, { problems, more: 0 })) console.error(line);
    return null;
  }
}

/** Every problem as FILE:LINE:COLUMN, as editors and CI read it. */
export function problemLines(
  name: string,
  { problems, more }: { readonly problems: readonly (Problem & { readonly path?: string })[]; readonly more: number },
): string[] {
  return [
    ...problems.map(
      ({ line, column, path, message }) => `${name}:${line}:${column}: ${path ? `${path}: ` : ""}${message}`,
    ),
    ...(more > 0 ? [`${name}: and ${more} more problems`] : []),
  ];
}
