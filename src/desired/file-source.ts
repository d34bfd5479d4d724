// gateway.yaml as a source of the document: watches it, applies what its author changed, reports its problems.
// A broken, half-written, vanished or unreadable file changes nothing.
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { watch } from "chokidar";
import { systemCode, toGatewayError } from "../core/errors.ts";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { createSerial } from "../core/serial.ts";
import { steadyNow } from "../core/steady.ts";
import { fileStamp } from "../state/files.ts";
import { repeat } from "../state/repeat.ts";
import { fileAuthor } from "./changes.ts";
import { documentBounds, tooLong } from "./document/bounds.ts";
import { failed, type Parsed, type SourceStatus } from "./document/parse.ts";
import { hashOfText, parseApart } from "./parse-apart.ts";
import type { DesiredStore } from "./store.ts";
import { createWriteBack, type WriteBack } from "./write-back.ts";

export type FileSource = ReturnType<typeof watchFileSource>;

interface Content {
  readonly bytes: Buffer;
  /** SHA-256, hex. */
  readonly hash: string;
}

/** An editor's save comes in pieces, a ms or two apart: a text counts if it is unchanged after this time. */
const settleMs = 5;
/** The same of a text that may be half of a save: it lacks what is to stay. */
const halfSettleMs = 50;
/** ms between an event and the first read: the write that follows a truncation is part of it. */
const eventMs = 5;
/** A text that was applied or found wrong, and a file that has gone, is read once more after this time. */
const recheckMs = 400;

export function unreadSource(path: string): SourceStatus {
  return unapplied(path, "Unread", "not read yet");
}

export interface FileSourceOptions {
  readonly path: string;
  readonly store: DesiredStore;
  readonly presetAllow?: PresetAllow;
  /** What calls change is written into the file. */
  readonly writesBack?: boolean;
  /** Its changes are reported through `onPreset`. */
  readonly presetPath: string;
  readonly onPreset: () => void;
  readonly onStatus: (status: SourceStatus) => void;
  readonly warn: (message: string, fields: object) => void;
  /** For tests, which cannot wait as long as people do. */
  readonly now?: () => number;
  /** Poll interval for file systems without events, in ms. */
  readonly pollMs: number;
}

export function watchFileSource(options: FileSourceOptions) {
  const path = resolve(options.path);
  const closing = new AbortController();
  let status = unreadSource(path);
  /** Of the text that was applied or found wrong last. */
  let seenHash: string | null = null;
  /** Of the text that was applied last. */
  let appliedBytes = 0;
  const { presetAllow = noneAllowed, store, now = steadyNow } = options;
  const writer = createWriteBack({ path, store, presetAllow, now });
  const serialized = createSerial();
  /** Queued, and not begun. */
  let next: Promise<void> | null = null;
  /** What the files looked like at the last poll. */
  let polled = "";
  let polledPreset = "";

  async function examine(read: () => Promise<Content | SourceStatus>): Promise<void> {
    const source = await read();
    const hash = "hash" in source ? source.hash : null;
    if (closing.signal.aborted || (hash !== null && hash === seenHash)) return;
    const found = "hash" in source ? await apply({ path, store, presetAllow, writer }, source) : source;
    // What could not be stored is tried again at each poll.
    seenHash = found.valid || found.reason === "ParseError" ? hash : null;
    if ("bytes" in source && found.valid) appliedBytes = source.bytes.length;
    const isNews = report(found);
    // The watcher drops an event that follows another within 5 ms: the write after a truncation, seen as an empty file. And it misses a
    // file that comes while it begins to wait for it.
    if (seenHash !== null || isNews) settleIn(recheckMs);
  }

  function report(found: SourceStatus): boolean {
    if (found.reason === status.reason && found.message === status.message) return false;
    options.onStatus((status = found));
    return true;
  }

  /** A save that comes meanwhile is merged first, and written back with the rest. */
  async function writeBack(): Promise<void> {
    if (options.writesBack !== true || !status.valid || closing.signal.aborted) return;
    try {
      const written = await writer.write();
      if (written === "changed") return await examine(readSettled).then(writeBack);
      if (written !== null) [seenHash, appliedBytes] = [written.hash, written.bytes];
      report(appliedSource(path));
    } catch (error) {
      const why = systemCode(error) ?? toGatewayError(error).message;
      const message = `${path} is applied, but changes of calls could not be written into it: ${why}`;
      report({ ...appliedSource(path), reason: "WriteBackFailed", message });
    }
  }

  /** Reads until the text has stopped changing: a half-written file can be a valid, smaller document. */
  async function readSettled(): Promise<Content | SourceStatus> {
    let source = await readSource(path);
    for (let before = ""; "hash" in source && source.hash !== seenHash && source.hash !== before; ) {
      before = source.hash;
      // Rejects when the source is closed.
      const ms =
        source.bytes.length < appliedBytes || lacksModel(source.bytes, options.store) ? halfSettleMs : settleMs;
      await delay(ms, undefined, { signal: closing.signal }).catch(() => undefined);
      source = await readSource(path);
    }
    return source;
  }

  /** Calls before it begins share one read: another busy file in the folder costs no more than that. */
  function settle(): Promise<void> {
    next ??= serialized(() => {
      next = null;
      return examine(readSettled).then(writeBack);
    });
    return next;
  }

  function settleIn(ms: number): void {
    setTimeout(() => void settle(), ms).unref();
  }

  /** Reads the file only where it looks another than at the last poll, or something is left to be tried again. */
  async function pollOnce(): Promise<void> {
    const [before, presetBefore] = [polled, polledPreset];
    [polled, polledPreset] = await Promise.all([fileStamp(path), fileStamp(options.presetPath)]);
    // A closed watcher to which something is added is open again.
    if (closing.signal.aborted) return;
    if (polledPreset !== presetBefore) {
      // Has no effect on a file that is watched. Of one that is not there, which the first pass makes, the folder would be watched.
      if (polledPreset !== "") watcher.add(options.presetPath);
      options.onPreset();
    }
    if (polled !== before || status.reason !== "Applied") await settle();
  }

  if (options.writesBack === true) store.onChange(() => void settle());
  const watcher = watchSaves({ ...options, path }, settleIn);
  // What changed between the first look and the watcher's own has no event.
  watcher.on("ready", () => void settle());
  const stopPolling = repeat(options.pollMs, () => void pollOnce());

  return {
    status: () => status,
    /** Reads the file now; resolves when it is applied or found wrong. */
    check: () => serialized(() => examine(() => readSource(path))),
    /** As `check`, of a text that has stopped changing. */
    refresh: settle,
    close: async (): Promise<void> => {
      closing.abort();
      stopPolling();
      await watcher.close();
      await serialized(async () => undefined);
    },
  };
}

/**
 * `onFile`: something has changed, to be read after so many ms. The files are watched, and not their folder: chokidar reads all of a
 * folder at each write in it, and our own writes into the state folder were eight reads per edit.
 */
function watchSaves(
  { path, presetPath, onPreset, warn }: FileSourceOptions,
  onFile: (ms: number) => void,
): ReturnType<typeof watch> {
  const preset = resolve(presetPath);
  const watcher = watch(existsSync(preset) ? [path, preset] : path, {
    ignoreInitial: true,
    ignorePermissionErrors: true,
  });
  watcher.on("all", (event, changed) => {
    if (resolve(changed) === preset) return onPreset();
    onFile(eventMs);
    // Until it is back, its folder is watched for it.
    if (event === "unlink") watcher.add(path);
  });
  watcher.on("error", (error) => warn("watching failed; polling continues", { error: String(error) }));
  return watcher;
}

/** Of those in the file before: one that leaves it and comes back loses what the API had set for it. */
function lacksModel(text: Buffer, { current, inFile }: DesiredStore): boolean {
  return current().document.models.some(({ id }) => inFile(id) !== undefined && !text.includes(id));
}

/** What the file holds; without that, its state. */
async function readSource(path: string): Promise<Content | SourceStatus> {
  try {
    const { size } = await stat(path);
    if (size > documentBounds.bytes) return wrong(path, failed(tooLong));
    const bytes = await readFile(path);
    return { bytes, hash: hashOfText(bytes) };
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return unapplied(path, "FileMissing", `${path} does not exist; ${lastStays}`);
    return unapplied(path, "FileUnreadable", `${path} cannot be read (${code ?? String(error)}); ${lastStays}`);
  }
}

async function apply(
  {
    path,
    store,
    presetAllow,
    writer,
  }: Pick<FileSourceOptions, "path" | "store"> & { readonly presetAllow: PresetAllow; readonly writer: WriteBack },
  { bytes, hash }: Content,
): Promise<SourceStatus> {
  const parsed = await parseApart(bytes, presetAllow);
  if (!parsed.ok) return wrong(path, parsed);
  try {
    await store.applyFile(parsed.tree, fileAuthor(hash), { sha256: hash, base: writer.baseOf(parsed.tree) });
    writer.applied(hash, parsed.tree);
    return appliedSource(path);
  } catch (thrown) {
    const { code, message } = toGatewayError(thrown);
    return code === "invalid_document"
      ? unapplied(path, "Conflict", `${path} conflicts with changes of the API: ${message}; ${lastStays}`)
      : unapplied(path, "StateUnwritable", `the document could not be stored: ${message}`);
  }
}

const lastStays = "the last good document stays";

function appliedSource(path: string): SourceStatus {
  return { path, valid: true, reason: "Applied", message: `${path} is applied`, problems: [] };
}

function unapplied(
  path: string,
  reason: string,
  message: string,
  problems: SourceStatus["problems"] = [],
): SourceStatus {
  return { path, valid: false, reason, message, problems };
}

function wrong(path: string, { problems, more }: Parsed & { ok: false }): SourceStatus {
  const [first] = problems;
  const others = problems.length - 1 + more;
  const where = first ? `${path}:${first.line}:${first.column}` : path;
  const what = first ? `${first.path ? `${first.path}: ` : ""}${first.message}` : "unreadable";
  const rest = others > 0 ? ` (and ${others} more)` : "";
  return unapplied(path, "ParseError", `${where}: ${what}${rest}; ${lastStays}`, problems);
}
