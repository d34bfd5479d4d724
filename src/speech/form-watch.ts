// Watches a form of several parts go by and changes none of it: what its fields say, whether there is a file, and that
// nothing but the file is large. whisper-server takes a word of 40,000 characters for a minute of work that nobody can stop.
// Pure. It reads a form as the engine's HTTP library does; whatever could be read in two ways counts as a field.
import { GatewayError } from "../core/errors.ts";
import { checkSound, headBytes } from "./sound-header.ts";
import { checkField } from "./transcription-fields.ts";

export interface FormWatch {
  /**
   * Throws `invalid_request` over a form that is none, a field that is too large or that the engine would not take, and as
   * {@link checkSound} over a file, before the chunk with its end has gone by.
   */
  see(chunk: Uint8Array): void;
  /** Those that have gone by whole; the last one where two have one name. */
  readonly fields: ReadonlyMap<string, string>;
  hasFile(): boolean;
  /** Whether the boundary that was announced has come. */
  hasBegun(): boolean;
}

/** Bytes of a part that is not the file: more than any prompt that the engine reads (224 tokens). */
export const fieldLimit = 4096;
const headersLimit = 8192;
const partsLimit = 100;
/** After the last boundary there is at most an empty line. */
const epilogueLimit = 16;

const lineEnd = Buffer.from("\r\n");
const blankLine = Buffer.from("\r\n\r\n");

/** Null where the text is no type of a form. */
export function boundaryOf(contentType: string): string | null {
  const match = /^multipart\/form-data\s*;(?:[^"]*;)?\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2] ?? "";
  return /^[!-~](?:[ -~]{0,198}[!-~])?$/.test(boundary) && !/[;"\\]/.test(boundary) ? boundary : null;
}

/** As the engine reads it, which knows only these letters in this case. */
export function formType(boundary: string): string {
  return `multipart/form-data; boundary=${/^[\w'+.-]+$/.test(boundary) ? boundary : `"${boundary}"`}`;
}

type Place = "before" | "headers" | "file" | "field" | "boundary" | "after";

export function createFormWatch(boundary: string): FormWatch {
  const opening = Buffer.from(`--${boundary}\r\n`);
  const closing = Buffer.from(`\r\n--${boundary}`);
  const fields = new Map<string, string>();
  let place: Place = "before";
  let rest: Buffer = Buffer.alloc(0);
  let name = "";
  let hasFile = false;
  /** The file's first bytes; null once they have been looked at. */
  let head: Buffer[] | null = null;
  let fileLength = 0;
  let leastLength = 0;
  let parts = 0;
  let epilogue = 0;

  /** Whether a step further was made; false: more bytes are needed. */
  function step(): boolean {
    switch (place) {
      case "before":
        if (rest.indexOf(opening) < 0 && rest.length - opening.length > headersLimit) throw noBoundary();
        return through(opening, headersLimit, "what comes before the form's first boundary", () => begin());
      case "headers":
        return headers();
      case "file":
        return file();
      case "field":
        return through(closing, fieldLimit, `the field ${quoted(name)}`, (value) => {
          const text = value.toString("utf8");
          checkField(name, text);
          fields.set(name, text);
          place = "boundary";
        });
      case "boundary":
        return afterBoundary();
      case "after":
        epilogue += rest.length;
        rest = Buffer.alloc(0);
        if (epilogue > epilogueLimit) throw invalid("there is something after the form's last boundary");
        return false;
      default:
        return place satisfies never;
    }
  }

  function begin(): void {
    place = "headers";
    if (++parts > partsLimit) throw invalid(`the form has more than ${partsLimit} parts`);
  }

  /** Takes everything up to and with the mark. */
  function through(mark: Buffer, limit: number, what: string, then: (before: Buffer) => void): boolean {
    const at = rest.indexOf(mark);
    if ((at < 0 ? rest.length - mark.length : at) > limit) throw tooLong(what, limit);
    if (at < 0) return false;
    const before = rest.subarray(0, at);
    rest = rest.subarray(at + mark.length);
    then(before);
    return true;
  }

  function headers(): boolean {
    const none = rest.subarray(0, lineEnd.length).equals(lineEnd);
    if (none) rest = rest.subarray(lineEnd.length);
    const use = (text: string): void => {
      const part = partOf(text);
      name = part.name;
      place = part.isFile ? "file" : "field";
      hasFile ||= part.isFile;
      head = [];
      fileLength = 0;
    };
    if (!none)
      return through(blankLine, headersLimit, "what a part of the form says of itself", (text) =>
        use(text.toString("latin1")),
      );
    use("");
    return true;
  }

  function file(): boolean {
    const at = rest.indexOf(closing);
    // The boundary may be cut in two by a chunk's end.
    const end = at < 0 ? Math.max(0, rest.length - closing.length + 1) : at;
    look(rest.subarray(0, end), at >= 0);
    rest = rest.subarray(at < 0 ? end : end + closing.length);
    if (at >= 0) place = "boundary";
    return at >= 0;
  }

  function look(bytes: Buffer, isEnd: boolean): void {
    head?.push(bytes.subarray(0, Math.max(0, headBytes - fileLength)));
    fileLength += bytes.length;
    if (head !== null && (fileLength >= headBytes || isEnd)) {
      leastLength = checkSound(Buffer.concat(head));
      head = null;
    }
    if (isEnd && fileLength < leastLength) throw invalid("the sound has fewer samples than it says");
  }

  function afterBoundary(): boolean {
    if (rest.length < 2) return false;
    const mark = rest.toString("latin1", 0, 2);
    rest = rest.subarray(2);
    if (mark === "\r\n") begin();
    else if (mark === "--") place = "after";
    else throw invalid("a boundary of the form goes on with something else");
    return true;
  }

  return {
    fields,
    hasFile: () => hasFile,
    hasBegun: () => parts > 0,
    see: (chunk) => {
      rest =
        rest.length === 0
          ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
          : Buffer.concat([rest, chunk]);
      while (step());
    },
  };
}

/** The engine's library splits at every `;`, quoted or not, and takes the first of several names. */
function partOf(headers: string): { readonly name: string; readonly isFile: boolean } {
  const dispositions = headers.split("\r\n").filter((line) => /^content-disposition/i.test(line));
  const [first] = namesIn(headers);
  const name = first?.[1] ?? first?.[2] ?? "";
  // A file's name may hold anything: as it is quoted, all others take it for what it is.
  const said = namesIn(headers.replace(/"(?:[^"\\\r\n]|\\.)*"/g, '""')).length;
  return { name, isFile: name === "file" && said === 1 && dispositions.length === 1 };
}

function namesIn(text: string): readonly RegExpExecArray[] {
  return [...text.matchAll(/(?:^|[;\s])name\s*=\s*(?:"([^"]*)"|([^;\s"]*))/gi)];
}

/** Of a form in which the boundary that its type announces does not come. */
export function noBoundary(): GatewayError {
  return invalid("the upload does not begin with the boundary that its Content-Type names");
}

function tooLong(what: string, limit: number): GatewayError {
  return invalid(`${what} has more than ${limit} bytes; only the field \`file\` may`);
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 60));
}

function invalid(why: string): GatewayError {
  return new GatewayError("invalid_request", why);
}
