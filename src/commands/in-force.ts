// Waits until a change is in force: the preset is written and the running router has read it. Not until everything is done:
// a running pull does not delay a context size.
import { errorCatalog } from "../core/error-catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { type Action, backoffKey } from "../plan/actions.ts";
import { type Loop, openMatters, type Pass } from "../reconcile/loop.ts";
import type { StatusReport } from "../status/report.ts";
import type { Call } from "./edits.ts";

export interface WaitDeps {
  readonly loop: Loop;
  readonly status: () => StatusReport;
  readonly waitTimeoutMs: number;
}

/** What the preset and the router are planned under. */
const routerKeys: readonly string[] = ["preset", "router"];

export interface Wait {
  readonly generation: number;
  /** Only a pass that begins after the call counts. */
  readonly fresh?: boolean;
  readonly call: Pick<Call, "signal">;
  /** Default: --wait-timeout. */
  readonly timeoutMs?: number;
  /** Throws to end the wait. */
  readonly test: (pass: Pass) => boolean;
}

/** Like {@link Loop.waitFor}; a `wait_timeout` names what is open. */
export async function waitFor(deps: WaitDeps, { generation, fresh, call, timeoutMs, test }: Wait): Promise<Pass> {
  try {
    return await deps.loop.waitFor({
      generation,
      ...(fresh ? { fresh } : {}),
      timeoutMs: timeoutMs ?? deps.waitTimeoutMs,
      signal: call.signal,
      test,
    });
  } catch (error) {
    const last = deps.loop.last();
    if (!(error instanceof GatewayError) || error.code !== "wait_timeout" || !last) throw error;
    throw new GatewayError("wait_timeout", `${error.message}: ${whatIsOpen(last, deps)}`);
  }
}

/**
 * Resolves with the first pass that has seen the generation and finds nothing left to do for preset and router, nor for
 * the further keys. Errors: `suspended`, errors of the stuck action, `engine_missing`, `wait_timeout`.
 */
export async function untilInForce(
  deps: WaitDeps,
  wait: Omit<Wait, "test"> & { readonly keys?: readonly string[]; readonly test?: (pass: Pass) => boolean },
): Promise<Pass> {
  const keys = [...routerKeys, ...(wait.keys ?? [])];
  return waitFor(deps, {
    ...wait,
    test: (pass) => {
      throwIfStuck(deps, pass, keys);
      return isInForce(pass, keys) && (wait.test?.(pass) ?? true);
    },
  });
}

function isInForce({ plan, running, observed: { cache, preset, router } }: Pass, keys: readonly string[]): boolean {
  // Nothing is planned for what cannot be read, so an empty plan proves nothing there.
  if (cache.state === "unknown" || preset.state === "unknown") return false;
  const open = [...plan.actions, ...plan.held.map((held) => held.action), ...running.map(({ action }) => action)];
  return (
    !open.some((action) => keys.includes(action.key)) &&
    router.phase === "ready" &&
    router.silentSince === null &&
    router.loadedPreset === preset.value.text
  );
}

/** Throws if one of these keys will not be done without help, or not soon. */
export function throwIfStuck({ loop, status }: WaitDeps, { plan, observed }: Pass, keys: readonly string[]): void {
  for (const { action, why } of plan.held) {
    if (!keys.includes(action.key)) continue;
    if (why === "suspended")
      throw new GatewayError("suspended", `noted, but not made: the document says suspend (${action.message})`);
    const failure = failureOf(loop, action);
    // Waiting for disk space or a writable folder may take days.
    if (failure && (why === "stalled" || errorCatalog[failure.code].reaction === "wait")) throw failure;
  }
  if (!keys.includes("router") || observed.router.binary !== "missing") return;
  const ready = status().conditions.find(({ type }) => type === "RouterReady");
  if (ready && ready.reason !== "NotStarted") throw new GatewayError("engine_missing", ready.message);
}

export function failureOf(loop: Loop, action: Action): GatewayError | null {
  const entry = loop.backoff().get(backoffKey(action));
  return entry ? new GatewayError(entry.code, entry.message) : null;
}

function whatIsOpen(pass: Pass, { loop }: WaitDeps): string {
  const { cache, preset } = pass.observed;
  const unseen = [cache, preset].flatMap((part) => (part.state === "unknown" ? [part.why] : []));
  return unseen.length > 0 ? unseen.join("; ") : openMatters(pass, loop.backoff());
}
