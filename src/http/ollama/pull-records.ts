// How a pull goes on, as the records of Ollama's POST /api/pull. Pure: the clock comes in.

import type { PullNews } from "../../commands/pull.ts";

export interface PullRecord {
  readonly status: string;
  /** `sha256:` and hex; clients keep one bar for each. */
  readonly digest?: string;
  /** Bytes of the file. */
  readonly total?: number;
  readonly completed?: number;
}

interface Layer {
  readonly name: string;
  readonly digest: string | undefined;
  readonly total: number;
  /** Bytes, as last sent. */
  told: number;
  /** ms */
  toldAt: number;
}

/** A record for every chunk that comes in would be thousands a second. */
const everyMs = 100;

export function createPullRecords(now: () => number) {
  const layers = new Map<string, Layer>();
  let last = "";
  let fetched = false;

  /** A status on its own, once in a row. */
  function said(status: string): readonly PullRecord[] {
    if (status === last) return [];
    last = status;
    return [{ status }];
  }

  function begun(): readonly PullRecord[] {
    return last === "" ? said("pulling manifest") : [];
  }

  function tell(layer: Layer, completed: number): PullRecord {
    layer.told = completed;
    layer.toldAt = now();
    last = `pulling ${layer.name}`;
    const { digest, total } = layer;
    return { status: last, ...(digest !== undefined && { digest }), total, completed };
  }

  /** Bars that stand short of their end, but for that of the file under way. */
  function fill(but: Layer | null): readonly PullRecord[] {
    return [...layers.values()]
      .filter((layer) => layer !== but && layer.told < layer.total)
      .map((layer) => tell(layer, layer.total));
  }

  function finish(): readonly PullRecord[] {
    if (fetched) return [];
    fetched = true;
    return [...begun(), ...fill(null), ...said("verifying sha256 digest"), ...said("writing manifest")];
  }

  return {
    /** The first record, where there was none yet. */
    begin: begun,
    push: (news: PullNews): readonly PullRecord[] => {
      if (news.kind === "fetched") return finish();
      if (news.kind !== "progress") return [...begun(), ...said(news.message)];
      const { file, digest, fileCompleted, fileTotal } = news.progress;
      const hex = digest?.replace(/^sha256:/, "") || undefined;
      const key = hex ?? file ?? "";
      if (key === "" || fileCompleted === undefined || fileTotal === undefined) return begun();
      const known = layers.get(key);
      const layer = known ?? {
        name: hex?.slice(0, 12) ?? key,
        digest: hex === undefined ? undefined : `sha256:${hex}`,
        total: fileTotal,
        told: -1,
        toldAt: 0,
      };
      layers.set(key, layer);
      const before = [...begun(), ...(known ? [] : fill(layer))];
      const due = !known || now() - layer.toldAt >= everyMs || fileCompleted >= layer.total;
      return due && fileCompleted !== layer.told ? [...before, tell(layer, fileCompleted)] : before;
    },
    /** The remaining records. */
    end: (): readonly PullRecord[] => [...finish(), ...said("success")],
  };
}
