// Follows the gateway: one stream of events, and the status read again where an event says that it has changed.
import { type GatewayClient, GatewayClientError } from "../client/index.ts";
import { createSerial } from "../core/serial.ts";
import { afterEvent, type Live, nothingYet } from "./live-state.ts";

/** ms: events come in groups. */
const settleMs = 120;
/** ms before a lost connection is tried again; doubled with each try. */
const firstRetryMs = 500;
const longestRetryMs = 10_000;

export interface Follower {
  readonly client: GatewayClient;
  readonly signal: AbortSignal;
  readonly onChange: (live: Live) => void;
  /** A license key is needed, or this one is not enough; nothing is followed any more. */
  readonly onRefused: (error: GatewayClientError) => void;
}

export async function follow({ client, signal, onChange, onRefused }: Follower): Promise<void> {
  let live = nothingYet;
  let since = "0";
  let retryMs = firstRetryMs;

  const change = (next: Live): void => {
    live = next;
    if (!signal.aborted) onChange(live);
  };
  let isReading = false;
  const read = coalesced(async () => {
    isReading = true;
    const status = await client.status({ signal });
    isReading = false;
    if (!("conditions" in status))
      throw new GatewayClientError(401, "a license key is needed, and none that is valid was sent");
    change({ ...live, status, isConnected: true });
    retryMs = firstRetryMs;
    if (status.generation !== live.desired?.generation) {
      const desired = await client.desired.get({ signal });
      change({ ...live, desired });
    }
  });

  /** Until the connection ends. */
  async function listen(over: AbortController): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const fail = (error: unknown): void => over.abort(error);
    read().catch(fail);
    try {
      for await (const event of client.events({ since, signal: over.signal })) {
        since = event.id;
        const { live: next, isStale } = afterEvent(live, event);
        if (next !== live) change(next);
        // A status that was under way may be older than the event, and would undo it: a request that was over stayed on the page.
        if (!(isStale || isReading) || timer !== undefined) continue;
        timer = setTimeout(() => {
          timer = undefined;
          read().catch(fail);
        }, settleMs);
      }
    } finally {
      clearTimeout(timer);
    }
    if (over.signal.aborted) throw over.signal.reason;
  }

  while (!signal.aborted) {
    const over = new AbortController();
    const end = (): void => over.abort();
    signal.addEventListener("abort", end);
    const error = await listen(over).catch((thrown: unknown) => thrown);
    signal.removeEventListener("abort", end);
    over.abort();
    if (error instanceof GatewayClientError && (error.status === 401 || error.status === 403)) return onRefused(error);
    change({ ...live, isConnected: false });
    await pause(retryMs, signal);
    retryMs = Math.min(2 * retryMs, longestRetryMs);
  }
}

/** Calls while it runs make one more run, after it. */
function coalesced(run: () => Promise<void>): () => Promise<void> {
  const inTurn = createSerial();
  let next: Promise<void> | null = null;
  const begin = (): Promise<void> => {
    next = null;
    return run();
  };
  return () => (next ??= inTurn(begin));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
