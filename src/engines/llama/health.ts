// Whether a process that is silent lives: asked once for all requests that wait for it, as a thousand would else ask a thousand times.
import { askServer } from "./ask-server.ts";
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

/** Whether it says within the time that it is well. */
export function isHealthyNow(server: Pick<Instance, "origin" | "key">, withinMs: number): Promise<boolean> {
  return askServer(server, { path: "/health" }, withinMs).then(
    ({ status }) => status === 200,
    () => false,
  );
}
