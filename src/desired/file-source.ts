// gateway.yaml as a source of the document: watches it, applies what its author changed, reports its problems.
// A broken, half-written, vanished or unreadable file changes nothing.
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
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
  /** The same once the file stands still, as its own events would have it. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

interface Content {
  readonly bytes: Buffer;
  /** SHA-256, hex. */
  readonly hash: string;
}

/** An editor's save comes in pieces: a text counts if it is unchanged after this time. */
const settleMs = 120;
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
  let status = unreadSource(path);
  let seenHash: string | null = null;
  let timer: NodeJS.Timeout | null = null;
  let looking = false;
  let again = false;
  const waiting = new Set<() => void>();
  let closed = false;
  let work: Promise<void> = Promise.resolve();

  function report(next: Omit<SourceStatus, "path">): void {
    if (next.reason === status.reason && next.message === status.message) return;
    status = { path, ...next };
    options.onStatus(status);
  }

  async function read(): Promise<Content | null> {
    try {
      const size = await stat(path).then(
        (entry) => entry.size,
        () => 0,
      );
      if (size > documentBounds.bytes) {
        seenHash = null;
        reportWrong({ problems: [{ line: 1, column: 1, path: "", message: tooLong }], more: 0 });
        return null;
      }
      const bytes = await readBytesIfPresent(path);
      if (bytes !== null) return { bytes, hash: createHash("sha256").update(bytes).digest("hex") };
      seenHash = null;
      report({
        valid: false,
        reason: "FileMissing",
        message: `${path} does not exist; the last good document stays`,
        problems: [],
      });
    } catch (error) {
      seenHash = null;
      const why = systemCode(error) ?? String(error);
      report({
        valid: false,
        reason: "FileUnreadable",
        message: `${path} cannot be read (${why}); the last good document stays`,
        problems: [],
      });
    }
    return null;
  }

  async function apply({ bytes, hash }: Content): Promise<void> {
    if (hash === seenHash) return;
    const parsed = await parseApart(bytes, options.presetAllow ?? noneAllowed);
    if (parsed.ok) {
      await options.store.applyFile(parsed.tree, `file:${hash.slice(0, 12)}`);
      seenHash = hash;
      report({ valid: true, reason: "Applied", message: `${path} is applied`, problems: [] });
      return;
    }
    seenHash = hash;
    reportWrong(parsed);
  }

  function reportWrong({ problems, more }: Omit<Parsed & { ok: false }, "ok">): void {
    const [first] = problems;
    const others = problems.length - 1 + more;
    const where = first ? `${path}:${first.line}:${first.column}` : path;
    const what = first ? `${first.path ? `${first.path}: ` : ""}${first.message}` : "unreadable";
    report({
      valid: false,
      reason: "ParseError",
      message: `${where}: ${what}${others > 0 ? ` (and ${others} more)` : ""}; the last good document stays`,
      problems,
    });
  }

  function serialized(task: () => Promise<void>): Promise<void> {
    work = work.then(task).catch((thrown: unknown) => {
      const error = toGatewayError(thrown);
      const conflict = error.code === "invalid_document";
      // Each poll tries again, so it is reported once.
      report({
        valid: false,
        reason: conflict ? "Conflict" : "StateUnwritable",
        message: conflict
          ? `${path} conflicts with changes of the API: ${error.message}; the last good document stays`
          : `the document could not be stored: ${error.message}`,
        problems: [],
      });
      seenHash = null;
    });
    return work;
  }

  function check(): Promise<void> {
    return serialized(async () => {
      const content = await read();
      if (content) await apply(content);
    });
  }

  /**
   * Applies the text once it has stopped changing: a half-written file can be a valid, smaller document. Events meanwhile cause
   * another read afterwards, not a delay, or another busy file in the folder would block it.
   */
  function settle(): void {
    if (closed) return;
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    if (timer) clearTimeout(timer);
    lookAfter(settleMs / 2, null);
  }

  function refresh(): Promise<void> {
    if (closed) return Promise.resolve();
    const rested = new Promise<void>((resolve) => void waiting.add(resolve));
    // The current read may be older than the caller's save.
    if (looking) again = true;
    else {
      looking = true;
      if (timer) clearTimeout(timer);
      void look(null);
    }
    return rested;
  }

  function lookAfter(ms: number, before: string | null): void {
    timer = setTimeout(() => void look(before), ms);
  }

  /** `before`: the hash that the previous read found. */
  async function look(before: string | null): Promise<void> {
    await serialized(async () => {
      again = false;
      const content = await read();
      if (!closed && content && content.hash !== before && content.hash !== seenHash)
        return lookAfter(settleMs, content.hash);
      looking = false;
      if (closed || content?.hash !== before || !content) return;
      await apply(content);
      // The watcher drops an event that follows another within 5 ms: the write after a truncation, seen as an empty file.
      if (!closed) timer = setTimeout(settle, recheckMs);
    });
    if (looking) return;
    if (again) return settle();
    tellWaiting();
  }

  function tellWaiting(): void {
    for (const resolve of waiting) resolve();
    waiting.clear();
  }

  const folders = [...new Set([path, ...options.others.map((other) => resolve(other))].map((file) => dirname(file)))];
  const others = new Set(options.others.map((other) => resolve(other)));
  // The parent folder is watched: editors rename over the file, ConfigMaps swap a symlink beside it.
  const watcher = watch(folders, { depth: 0, ignoreInitial: true, ignorePermissionErrors: true });
  watcher.on("all", (_event, changed) => {
    if (others.has(resolve(changed)) || options.isOther?.(resolve(changed))) options.onOther();
    else settle();
  });
  // What changed between the first look and the watcher's own has no event.
  watcher.on("ready", settle);
  watcher.on("error", (error) => options.warn("watching failed; polling continues", { error: String(error) }));
  const poll = setInterval(settle, options.pollMs);
  poll.unref();

  return {
    status: () => status,
    check,
    refresh,
    close: async () => {
      closed = true;
      tellWaiting();
      clearInterval(poll);
      if (timer) clearTimeout(timer);
      await watcher.close();
      await work;
    },
  };
}
