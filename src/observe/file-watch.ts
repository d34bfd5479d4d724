// Notices between two passes that the model cache's folder, files of the document's models or their sources have changed: the
// next pass may be a minute away. By a few calls of stat: no event comes of a disk that is unplugged or of a network share,
// watchers of folders would go off with each byte of our own pulls, and those of files end with the file. Reads no content.
import { stat } from "node:fs/promises";
import type { DesiredState } from "../desired/document.ts";
import { sourceStamp } from "../hub/source-file.ts";
import { type CachedModel, findCached, type Observed } from "../plan/observed.ts";

/** Looks every `everyMs`, never twice at a time, as a share may hang; call the result to end it. */
function watch(everyMs: number, look: () => Promise<void>): () => void {
  let isLooking = false;
  const lookOnce = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    await look();
    isLooking = false;
  };
  const timer = setInterval(() => void lookOnce(), everyMs);
  timer.unref();
  void lookOnce();
  return () => clearInterval(timer);
}

export function watchPlace(folder: string, everyMs: number, onChange: () => void): () => void {
  let last: string | null | undefined;
  return watch(everyMs, async () => {
    const place = await stat(folder).then(
      ({ dev, ino }) => `${dev}:${ino}`,
      () => null,
    );
    if (last !== undefined && place !== last) onChange();
    last = place;
  });
}

export interface FileWatch {
  readonly everyMs: number;
  /** The newest pass. */
  readonly last: () => { readonly desired: DesiredState; readonly observed: Observed } | null;
  /** A model's files are not as the pass saw them. */
  readonly onModel: () => void;
  /** A source is not as the pass saw it, and nobody seems to write to it any more. */
  readonly onSource: () => void;
}

export function watchFiles({ everyMs, last, onModel, onSource }: FileWatch): () => void {
  let stamps = new Map<string, string | null>();
  return watch(everyMs, async () => {
    const pass = last();
    if (!pass) return;
    const { cache, sources } = pass.observed;
    const cached = cache.state === "known" ? cache.value.models : [];
    const named = pass.desired.document.models.flatMap(({ id }) => findCached(cached, id) ?? []);
    const asSeen = await Promise.all(named.map(isAsSeen));
    if (asSeen.includes(false)) onModel();
    const before = stamps;
    stamps = new Map();
    for (const { path, stamp } of sources.values()) {
      const now = await sourceStamp(path);
      stamps.set(path, now);
      if (now !== stamp && now === before.get(path)) onSource();
    }
  });
}

/** True of one that is not whole: what comes of it is the pull's business. */
async function isAsSeen({ complete, files, projector, bytes, modifiedAt }: CachedModel): Promise<boolean> {
  if (!complete) return true;
  const places = [...files, ...(projector === null ? [] : [projector])];
  const found = await Promise.all(places.map((path) => stat(path).catch(() => null)));
  const own = found.slice(0, files.length).filter((entry) => entry !== null);
  return (
    !found.includes(null) &&
    own.reduce((sum, { size }) => sum + size, 0) === bytes &&
    Math.max(...own.map(({ mtimeMs }) => mtimeMs)) === modifiedAt
  );
}
