// What the document must say: kept by the test beside the gateway's, by rules of its own. Pure.
import { isDeepStrictEqual } from "node:util";

export interface BookModel {
  readonly ctxSize?: number;
  readonly preset?: { readonly threads: number };
}

export interface BookDocument {
  readonly context?: { readonly default: number };
  readonly models: Readonly<Record<string, BookModel>>;
  readonly rpc?: { readonly mode: "single" | "rpc"; readonly workers: readonly string[] };
}

/** As in a merge patch: null removes a model. */
export interface BookPatch {
  readonly context?: { readonly default: number };
  readonly models?: Readonly<Record<string, BookModel | null>>;
  readonly rpc?: BookDocument["rpc"];
}

export interface Book {
  wanted(): BookDocument;
  /** The document's file. */
  file(): BookDocument;
  /** The file as it is with the change, and the document once it is applied. */
  saveFile(patch: BookPatch): BookDocument;
  /** A call that changes the document is on its way. */
  attempt(patch: BookPatch): Attempt;
  /** The document is lost: the file as last applied takes its place. */
  loseDocument(): void;
  /** What was last applied is lost: all of the file counts as new. */
  loseApplied(): void;
  /** What is different from a document as the gateway tells it; null: nothing. Settles what was not known. */
  compare(told: unknown): string | null;
}

export interface Attempt {
  /** It was answered: the change is made. */
  done(): void;
  /** It was not answered, or with an error: it is made whole, or not at all. */
  unknown(): void;
}

export function createBook(first: BookDocument): Book {
  let file = first;
  let wanted = first;
  let alternative: BookDocument | null = null;

  return {
    wanted: () => wanted,
    file: () => file,
    saveFile: (patch) => {
      const next = merged(file, patch);
      wanted = withFile(wanted, file, next);
      if (alternative) alternative = withFile(alternative, file, next);
      file = next;
      return file;
    },
    attempt: (patch) => {
      const after = merged(wanted, patch);
      return {
        done: () => {
          wanted = after;
        },
        unknown: () => {
          alternative = after;
        },
      };
    },
    loseDocument: () => {
      wanted = file;
    },
    loseApplied: () => {
      wanted = withFile(wanted, { models: {} }, file);
    },
    compare: (told) => {
      const document = keyed(told);
      if (alternative && isDeepStrictEqual(document, plain(alternative))) wanted = alternative;
      if (isDeepStrictEqual(document, plain(wanted))) {
        alternative = null;
        return null;
      }
      const or = alternative ? ` or ${JSON.stringify(alternative)}` : "";
      return `the document is ${JSON.stringify(document)}, not ${JSON.stringify(wanted)}${or}`;
    },
  };
}

function merged(document: BookDocument, { context, models = {}, rpc }: BookPatch): BookDocument {
  const next = new Map(Object.entries(document.models));
  for (const [id, fields] of Object.entries(models)) {
    if (fields === null) next.delete(id);
    else next.set(id, { ...next.get(id), ...fields });
  }
  return { ...document, ...(context ? { context } : {}), ...(rpc ? { rpc } : {}), models: Object.fromEntries(next) };
}

/** What the file's author changed, in the document; a model that a call took out comes back as the file has it. */
function withFile(document: BookDocument, before: BookDocument, after: BookDocument): BookDocument {
  const next = new Map(Object.entries(document.models));
  for (const id of Object.keys(before.models)) if (!Object.hasOwn(after.models, id)) next.delete(id);
  for (const [id, fields] of Object.entries(after.models)) {
    const old = before.models[id];
    if (isDeepStrictEqual(old, fields)) continue;
    const now = next.get(id);
    const changed = Object.entries(fields).filter(
      ([key, value]) => !isDeepStrictEqual(old?.[key as keyof BookModel], value),
    );
    next.set(id, now ? { ...now, ...Object.fromEntries(changed) } : fields);
  }
  const context = isDeepStrictEqual(before.context, after.context) ? document.context : after.context;
  return { ...document, ...(context ? { context } : {}), models: Object.fromEntries(next) };
}

function plain(document: BookDocument): unknown {
  return JSON.parse(JSON.stringify(document)) as unknown;
}

/** The told document with its models by id, and without its version. */
function keyed(told: unknown): unknown {
  const { models, version: _version, ...rest } = told as { models?: readonly unknown[]; version?: number };
  const entries = (models ?? []).map((entry): [string, unknown] => {
    if (typeof entry === "string") return [entry, {}];
    const { id, ...fields } = entry as { id: string };
    return [id, fields];
  });
  return { ...rest, models: Object.fromEntries(entries) };
}

/** The file's text. */
export function bookYaml({ context, models }: BookDocument): string {
  const lines = Object.entries(models).map(([id, { ctxSize, preset }]) => {
    const size = ctxSize === undefined ? "" : `, ctxSize: ${ctxSize}`;
    const threads = preset ? `, preset: { threads: ${preset.threads} }` : "";
    return `  - { id: "${id}"${size}${threads} }\n`;
  });
  const head = context ? `context: { default: ${context.default} }\n` : "";
  return `# written by hand\nversion: 1\n${head}models:\n${lines.join("")}`;
}
