// Detects between two passes, which may be a minute apart, that the model cache's folder, files of the document's models or
// their sources changed. Polls with stat, a few calls a second: unplugged disks and network shares send no events, a watched
// folder sends one for each write of our own pulls, and a watched file none after it is replaced. Reads no content.
import { sourceStamp } from "../cache/download/import-source.ts";
import { identityOf } from "../cache/scan/scan.ts";
import { equalJson } from "../core/json.ts";
import type { DesiredState } from "../desired/document/document.ts";
import { findCached } from "../plan/find-model.ts";
import { type CachedModel, filesOf, type Observed } from "../plan/observed.ts";
import { stat } from "../state/files.ts";
import { repeat } from "../state/repeat.ts";
import { readEngineFiles } from "./document-files.ts";

/** Runs a check every `everyMs`, one at a time, as a share may hang; call the result to stop. */
function poll(everyMs: number, check: () => Promise<void>): () => void {
  let isChecking = false;
  const checkOnce = async (): Promise<void> => {
    if (isChecking) return;
    isChecking = true;
    await check();
    isChecking = false;
  };
  void checkOnce();
  return repeat(everyMs, () => void checkOnce());
}

export function watchPlace(folder: string, everyMs: number, onChange: () => void): () => void {
  let last: string | null | undefined;
  return poll(everyMs, async () => {
    const place = await identityOf(folder).catch(() => null);
    if (last !== undefined && place !== last) onChange();
    last = place;
  });
}

export interface FileWatch {
  readonly everyMs: number;
  readonly configPath: string;
  /** The newest pass. */
  readonly last: () => { readonly desired: DesiredState; readonly observed: Observed } | null;
  /** A model's files, or those that go to the engine beside it, differ from what the pass saw. */
  readonly onModel: () => void;
  /** A source differs from what the pass saw, and did not change between two checks. */
  readonly onSource: () => void;
}

/** In a check, in turns if there are more. 500 every two seconds took half a percent of a core. */
const filesPerCheck = 100;

export function watchFiles({ everyMs, configPath, last, onModel, onSource }: FileWatch): () => void {
  let stamps = new Map<string, string | null>();
  let checked = 0;
  return poll(everyMs, async () => {
    const pass = last();
    if (!pass) return;
    const { cache, sources, documentFiles } = pass.observed;
    const cached = cache.state === "known" ? cache.value.models : [];
    const named = pass.desired.document.models.flatMap(({ id }) => findCached(cached, id) ?? []);
    const from = checked % Math.max(1, named.length);
    let files = 0;
    const due = [...named.slice(from), ...named.slice(0, from)].filter((model) => {
      const hasRoom = files < filesPerCheck;
      files += filesOf(model).length;
      return hasRoom;
    });
    checked = from + due.length;
    const asSeen = await Promise.all(due.map(isAsSeen));
    const beside = await readEngineFiles(configPath, pass.desired.document.models);
    if (asSeen.includes(false) || !equalJson([...beside], [...documentFiles])) onModel();
    const before = stamps;
    stamps = new Map();
    for (const { path, stamp } of sources.values()) {
      const now = await sourceStamp(path);
      stamps.set(path, now);
      if (now !== stamp && now === before.get(path)) onSource();
    }
  });
}

/** Always true for an incomplete model: its pull is in progress. */
async function isAsSeen(model: CachedModel): Promise<boolean> {
  const { complete, files, bytes, modifiedAt } = model;
  if (!complete) return true;
  const found = await Promise.all(filesOf(model).map((path) => stat(path).catch(() => null)));
  const own = found.slice(0, files.length).filter((entry) => entry !== null);
  return (
    !found.includes(null) &&
    own.reduce((sum, { size }) => sum + size, 0) === bytes &&
    Math.max(...own.map(({ mtimeMs }) => mtimeMs)) === modifiedAt
  );
}
