// Connections that crawl: they never stand still for long enough to count as broken, and yet hold up the whole file. Seen: the
// last piece of a file from a node that gave five bytes a second, days to go, while the others had done theirs at once.

/** A connection at work. */
export interface Watched {
  /** Where in the file it is. */
  at(): number;
  /** Bytes that it still has to bring. */
  left(): number;
  /** Ends it, so that its bytes are asked for anew. */
  end(): void;
}

export interface CrawlWatch {
  /** Call the result when the connection is over. */
  watch(connection: Watched): () => void;
  close(): void;
}

/** So much slower than the best one has been lately is no bad luck. */
const timesSlower = 20;
/** Bytes per second below which nothing is gained by waiting, whatever the others do. */
const crawl = 256;
/** What takes less than this, in seconds, is waited for. */
const soon = 30;

/** Looks every `everyMs`; one that was there for less than a whole turn is left alone. */
export function createCrawlWatch(everyMs: number): CrawlWatch {
  const watched = new Map<Watched, number | null>();
  let best = 0;
  const timer = setInterval(look, everyMs);

  function look(): void {
    const rates = new Map<Watched, number>();
    for (const [connection, before] of watched) {
      const at = connection.at();
      if (before !== null) rates.set(connection, ((at - before) * 1000) / everyMs);
      watched.set(connection, at);
    }
    best = Math.max(best, ...rates.values());
    for (const [connection, rate] of rates) {
      if (!isCrawling(rate, connection.left(), best)) continue;
      // Once: where all of them have become slow it is the line, and no use to begin anew for ever.
      best = 0;
      watched.delete(connection);
      connection.end();
    }
  }

  return {
    watch(connection) {
      watched.set(connection, null);
      const from = connection.at();
      const began = performance.now();
      return () => {
        watched.delete(connection);
        const elapsed = performance.now() - began;
        if (elapsed > 0) best = Math.max(best, ((connection.at() - from) * 1000) / elapsed);
      };
    },
    close: () => clearInterval(timer),
  };
}

/** One that brings nothing at all may be waiting for the disk; where it is not, it counts as broken in a while. */
function isCrawling(rate: number, left: number, best: number): boolean {
  return rate > 0 && left / rate > soon && (rate < crawl || rate * timesSlower < best);
}
