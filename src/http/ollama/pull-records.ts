// How a pull goes on, as the records of Ollama's POST /api/pull. Pure: the clock comes in.
import type { NativePullRecord } from "../../../schemas/ollama.ts";
import type { PullNews } from "../../commands/pull.ts";
import type { Progress } from "../../plan/actions.ts";

/** Of one file; clients keep a bar for each digest. */
type Bar = NativePullRecord & { readonly total: number; readonly completed: number };

/** A record for every chunk that comes in would be thousands a second. */
const everyMs = 100;
const written = "writing manifest";

export function createPullRecords(now: () => number) {
  /** The last status sent. */
  let last = "";
  let bar: Bar | null = null;
  let drawnAt = 0;

  /** A status on its own, once in a row. */
  function said(status: string): readonly NativePullRecord[] {
    if (status === last) return [];
    last = status;
    return [{ status }];
  }

  function begun(): readonly NativePullRecord[] {
    return last === "" ? said("pulling manifest") : [];
  }

  function drawn(next: Bar): readonly NativePullRecord[] {
    bar = next;
    drawnAt = now();
    last = next.status;
    return [next];
  }

  /** The bar of a file that is over ends full. */
  function filled(): readonly NativePullRecord[] {
    return bar && bar.completed < bar.total ? drawn({ ...bar, completed: bar.total }) : [];
  }

  function progressed({ file, digest, fileCompleted, fileTotal }: Progress): readonly NativePullRecord[] {
    const hex = digest?.replace(/^sha256:/, "") || undefined;
    const name = hex?.slice(0, 12) ?? file;
    if (!name || fileCompleted === undefined || fileTotal === undefined) return [];
    const status = `pulling ${name}`;
    const next = { status, ...(hex && { digest: `sha256:${hex}` }), total: fileTotal, completed: fileCompleted };
    if (status !== bar?.status) return [...filled(), ...drawn(next)];
    const isDue = now() - drawnAt >= everyMs || fileCompleted >= fileTotal;
    return isDue && fileCompleted !== bar.completed ? drawn(next) : [];
  }

  function finished(): readonly NativePullRecord[] {
    return last === written ? [] : [...begun(), ...filled(), ...said("verifying sha256 digest"), ...said(written)];
  }

  return {
    /** The first record, where there was none yet. */
    begin: begun,
    push: (news: PullNews): readonly NativePullRecord[] => {
      if (news.kind === "fetched") return finished();
      return [...begun(), ...(news.kind === "progress" ? progressed(news.progress) : said(news.message))];
    },
    /** The remaining records. */
    end: (): readonly NativePullRecord[] => [...finished(), ...said("success")],
  };
}
