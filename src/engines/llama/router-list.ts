// The models of one running router: its list, kept current by its events and by health checks.
import { setTimeout as delay } from "node:timers/promises";
import { toGatewayError } from "../../core/errors.ts";
import type { RouterModel, RouterSnapshot } from "../../plan/observed.ts";
import { repeat } from "../../state/repeat.ts";
import type { Instances } from "./instances.ts";
import type { RouterEvent } from "./router-client.ts";
import type { RouterProcess } from "./router-process.ts";

export type RouterList = ReturnType<typeof createRouterList>;

export interface RouterListOptions {
  readonly instances: Pick<Instances, "update">;
  /** Interval of health checks. */
  readonly pingMs: number;
  readonly now: () => number;
  /** Called at every event, and with null when it no longer responds. */
  readonly onChange: (event: RouterEvent | null) => void;
  /** Called when the list was read. */
  readonly onList: () => void;
}

/** Delay before the events are subscribed again. */
const againMs = 500;

export function createRouterList({ process, client, key }: RouterProcess, options: RouterListOptions) {
  const { instances, now, onChange } = options;
  let models: RouterSnapshot["models"] = { state: "unknown", why: "the router is starting" };
  let silentSince: number | null = null;
  /** Lists are numbered as they are requested, that of a reload as it arrives: an older one that arrives late is dropped. */
  let asked = 0;
  let arrived = 0;
  /** The number of the last reload's list. */
  let reloaded = 0;
  const over = new AbortController();

  /** A list is about to be requested: `take` puts it into the tables, unless a newer one is in them. */
  function ask() {
    const number = ++asked;
    const isLate = (): boolean => over.signal.aborted || number < arrived;
    const isFromBeforeReload = (): boolean => !over.signal.aborted && number < reloaded;
    const take = (value: readonly RouterModel[]): void => {
      if (isLate()) return;
      arrived = number;
      instances.update(process.pid, key, value);
      models = { state: "known", value };
      silentSince = null;
      options.onList();
    };
    return { isLate, isFromBeforeReload, take };
  }

  /**
   * The list that a reload answered with is newer than those requested while it ran: one of them, with the settings from before,
   * was kept in its place, and the router restarted for a reload without effect.
   */
  function takeReloaded(value: readonly RouterModel[]): void {
    reloaded = asked + 1;
    ask().take(value);
  }

  /**
   * Requests the list. Resolves once it, or a newer one, is in the tables: a load was taken for one that had ended, because the
   * list from before it was still in them.
   */
  async function refresh(): Promise<void> {
    const { isLate, isFromBeforeReload, take } = ask();
    try {
      const value = await client.models();
      // The event that it was requested for may be newer than the reload's list.
      if (isFromBeforeReload()) return await refresh();
      take(value);
    } catch (error) {
      if (isLate()) return;
      const isNews = silentSince === null;
      silentSince ??= now();
      models = { state: "unknown", why: toGatewayError(error).message };
      if (isNews) onChange(null);
    }
  }

  /** What was loading is loaded, at the address that the list has: to ask for the list once more took 1 to 4 ms of each load. */
  function takeLoaded({ model, data }: RouterEvent): void {
    const { status, info } = (data ?? {}) as LoadedData;
    const known = models.state === "known" ? models.value : [];
    const loading = known.find(({ id, value }) => id === model && value === "loading");
    if (!loading || status !== "loaded") return;
    const loaded = { ...loading, value: status, nCtx: info?.meta?.n_ctx ?? null };
    // As a list that is newer than those under way, which have it as loading.
    ask().take(known.map((each) => (each === loading ? loaded : each)));
  }

  /** A router without events is polled by the loop alone. */
  async function watch(): Promise<void> {
    while (!over.signal.aborted) {
      try {
        await client.watch(
          (event) => {
            // The gateway alone reloads, and has the list from the response.
            if (event.event === "models_reload") return;
            // A big model reports its loading many times a second, and nothing else has changed by that.
            if (isProgress(event)) return onChange(event);
            takeLoaded(event);
            void refresh().then(() => onChange(event));
          },
          over.signal,
          () => void refresh(),
        );
      } catch (error) {
        if (toGatewayError(error).code === "not_supported") return;
      }
      await delay(againMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  }

  /** A hanging router sends no events, and nothing else shows it. */
  async function ping(): Promise<void> {
    if (!(await client.healthy())) await refresh();
  }

  return {
    models: () => models,
    /** Since when (ms) it has not responded; null while it does. */
    silentSince: () => silentSince,
    takeReloaded,
    refresh,
    /** Follows events, and checks its health. */
    follow: (): void => {
      // It may have been stopped while the first list was awaited.
      if (over.signal.aborted) return;
      void watch();
      over.signal.addEventListener(
        "abort",
        repeat(options.pingMs, () => void ping()),
      );
    },
    stop: () => over.abort(),
  };
}

interface LoadedData {
  readonly status?: string;
  readonly info?: { readonly meta?: { readonly n_ctx?: number } };
}

/** Progress of a load, not a change of state. */
export function isProgress({ data }: RouterEvent): boolean {
  return typeof data === "object" && data !== null && "progress" in data;
}
