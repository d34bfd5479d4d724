// Whether a process that is silent lives: asked once for all requests that wait for it, as a thousand would else ask a thousand times.
import { request } from "../../undici.ts";
import type { Instance } from "./instances.ts";

export function sharedHealth(withinMs: number): (instance: Instance) => Promise<boolean> {
  const asked = new Map<string, Promise<boolean>>();
  return (instance) => {
    const { origin } = instance;
    const known = asked.get(origin);
    if (known) return known;
    const answer = isHealthyNow(instance, withinMs);
    asked.set(origin, answer);
    void answer.then(() => setTimeout(() => asked.delete(origin), withinMs / 2).unref());
    return answer;
  };
}

async function isHealthyNow({ origin, key }: Instance, withinMs: number): Promise<boolean> {
  try {
    const answer = await request(`${origin}/health`, {
      headers: { authorization: `Bearer ${key}` },
      reset: true,
      signal: AbortSignal.timeout(withinMs),
    });
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
}
