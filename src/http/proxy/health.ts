// Whether a model's process that sends nothing still lives.
import type { Pool } from "undici";
import { steadyNow } from "../../core/steady.ts";
import type { Instance } from "../../engines/llama/instances.ts";

/**
 * Asks a process once for all requests that wait for it, and again only when its good answer is old: a thousand requests would
 * else be a thousand questions every few seconds, each with a connection of its own.
 */
export function sharedHealth(
  poolOf: (instance: Instance) => Pool,
  withinMs: number,
): (instance: Instance) => Promise<boolean> {
  const known = new Map<string, { readonly answer: Promise<boolean>; until: number }>();
  return (instance) => {
    const now = steadyNow();
    for (const [origin, { until }] of known) if (until < now) known.delete(origin);
    const shared = known.get(instance.origin);
    if (shared) return shared.answer;
    const entry = { answer: isHealthyNow(poolOf(instance), instance, withinMs), until: Number.POSITIVE_INFINITY };
    known.set(instance.origin, entry);
    void entry.answer.then((isWell) => {
      if (isWell) entry.until = steadyNow() + withinMs / 2;
      else known.delete(instance.origin);
    });
    return entry.answer;
  };
}

async function isHealthyNow(pool: Pool, instance: Instance, withinMs: number): Promise<boolean> {
  try {
    const answer = await pool.request({
      path: "/health",
      method: "GET",
      headers: { authorization: `Bearer ${instance.key}` },
      reset: true,
      signal: AbortSignal.timeout(withinMs),
    });
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
}
