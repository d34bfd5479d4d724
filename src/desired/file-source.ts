// gateway.yaml as a source of the document: watches it, applies what its author changed, reports its problems.
// A broken, half-written, vanished or unreadable file changes nothing.
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { watch } from "chokidar";
import { systemCode, toGatewayError } from "../core/errors.ts";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";
import { documentBounds, tooLong } from "./document/bounds.ts";
import type { Parsed, SourceStatus } from "./document/parse.ts";
import { parseApart } from "./parse-apart.ts";
import type { DesiredStore } from "./store.ts";

export interface FileSource {
  status(): SourceStatus;
  /** Reads the file now; resolves when it is applied or found wrong. */
  check(): Promise<void>;
  /** As {@link FileSource.check}, of a text that has stopped changing. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

interface Content {
  readonly bytes: Buffer;
  /** SHA-256, hex. */
  readonly hash: string;
}

/** An editor's save comes in pieces, a ms or two apart: a text counts if it is unchanged after this time. */
const settleMs = 50;
/** An applied text is read once more after this time. */
const recheckMs = 400;

export function unreadSource(path: string): SourceStatus {
  return { path, valid: false, reason: "Unread", message: "not read yet", problems: [] };
}

export async function watchFileSource(options: {
  readonly path: string;
  readonly store: DesiredStore;
  readonly presetAllow?: PresetAllow;
  /** Further files whose changes are reported through `onOther`: the preset file, edited by hand. */
  readonly others: readonly string[];
  /** Whether a file in one of the watched folders is reported too, by its path. */
  readonly isOther?: (path: string) => boolean;
  readonly onOther: () => void;
  readonly onStatus: (status: SourceStatus) => void;
  readonly warn: (message: string, fields: object) => void;
  /** Poll interval for file systems without events, in ms. */
  readonly pollMs: number;
}): Promise<FileSource> {
  const path = resolve(options.path);
  const closing = new AbortController();
  let status = unreadSource(path);
  /** Of the text that was applied or found wrong last. */
  let seenHash: string | null = null;
  let work: Promise<void> = Promise.resolve();
  let settling: Promise<void> | null = null;
  let isChanged = false;

  function report(reason: string, message: string, problems: SourceStatus["problems"] = []): void {
    if (reason === status.reason && message === status.message) return;
    status = { path, valid: reason === "Applied", reason, message, problems };
    options.onStatus(status);
  }

  function reportWrong({ problems, more }: Omit<Parsed & { ok: false }, "ok">): void {
    const [first] = problems;
    const others = problems.length - 1 + more;
    const where = first ? `${path}:${first.line}:${first.column}` : path;
    const what = first ? `${first.path ? `${first.path}: ` : ""}${first.message}` : "unreadable";
    const rest = others > 0 ? ` (and ${others} more)` : "";
    report("ParseError", `${where}: ${what}${rest}; the last good document stays`, problems);
  }

  async function read(): Promise<Content | null> {
    try {
      const size = await stat(path).then(
        (entry) => entry.size,
        () => 0,
      );
      const bytes = size > documentBounds.bytes ? null : await readBytesIfPresent(path);
      if (bytes !== null) return { bytes, hash: createHash("sha256").update(bytes).digest("hex") };
      if (size > documentBounds.bytes)
        reportWrong({ problems: [{ line: 1, column: 1, path: "", message: tooLong }], more: 0 });
      else report("FileMissing", `${path} does not exist; the last good document stays`);
    } catch (error) {
      const why = systemCode(error) ?? String(error);
      report("FileUnreadable", `${path} cannot be read (${why}); the last good document stays`);
    }
    seenHash = null;
    return null;
  }

  async function apply({ bytes, hash }: Content): Promise<void> {
    if (hash === seenHash) return;
    const parsed = await parseApart(bytes, options.presetAllow ?? noneAllowed);
    try {
      if (parsed.ok) await options.store.applyFile(parsed.tree, `file:${hash.slice(0, 12)}`);
    } catch (thrown) {
      seenHash = null;
      const { code, message } = toGatewayError(thrown);
      // Each poll tries again, so it is reported once.
      if (code !== "invalid_document") report("StateUnwritable", `the document could not be stored: ${message}`);
      else report("Conflict", `${path} conflicts with changes of the API: ${message}; the last good document stays`);
      return;
    }
    seenHash = hash;
    if (!parsed.ok) return reportWrong(parsed);
    report("Applied", `${path} is applied`);
    // The watcher drops an event that follows another within 5 ms: the write after a truncation, seen as an empty file.
    settleIn(recheckMs);
  }

  /** Reads until the text has stopped changing: a half-written file can be a valid, smaller document. */
  async function readSettled(): Promise<Content | null> {
    let content = await read();
    for (let before = ""; content !== null && content.hash !== seenHash && content.hash !== before; ) {
      before = content.hash;
      // Rejects when the source is closed.
      await delay(settleMs, undefined, { signal: closing.signal }).catch(() => undefined);
      content = closing.signal.aborted ? null : await read();
    }
    return content;
  }

  function check(readContent = read): Promise<void> {
    work = work.then(async () => {
      const content = await readContent();
      if (content) await apply(content);
    });
    return work;
  }

  /** Events meanwhile cause another round afterwards, not a delay, or another busy file in the folder would block it. */
  function settle(): Promise<void> {
    isChanged = true;
    settling ??= settleChanges().finally(() => {
      settling = null;
    });
    return settling;
  }

  function settleIn(ms: number): void {
    setTimeout(() => void settle(), ms).unref();
  }

  async function settleChanges(): Promise<void> {
    while (isChanged && !closing.signal.aborted) {
      isChanged = false;
      await check(readSettled);
    }
  }

  const folders = [...new Set([path, ...options.others.map((other) => resolve(other))].map((file) => dirname(file)))];
  const others = new Set(options.others.map((other) => resolve(other)));
  // The parent folder is watched: editors rename over the file, ConfigMaps swap a symlink beside it.
  const watcher = watch(folders, { depth: 0, ignoreInitial: true, ignorePermissionErrors: true });
  watcher.on("all", (_event, changed) => {
    if (others.has(resolve(changed)) || options.isOther?.(resolve(changed))) options.onOther();
    else settleIn(settleMs / 2);
  });
  // What changed between the first look and the watcher's own has no event.
  watcher.on("ready", () => void settle());
  watcher.on("error", (error) => options.warn("watching failed; polling continues", { error: String(error) }));
  const poll = setInterval(() => void settle(), options.pollMs);
  poll.unref();

  return {
    status: () => status,
    check: () => check(),
    refresh: settle,
    close: async () => {
      closing.abort();
      clearInterval(poll);
      await watcher.close();
      await work;
    },
  };
}
