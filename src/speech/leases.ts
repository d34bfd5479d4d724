// Who uses a speech engine: many at once, until it is to be changed; then nobody new, the last one out, and the change.
// Pure. Knows no engine and no time.
import { GatewayError } from "../core/errors.ts";

export interface Leases {
  /** For the time of an answer; call the result, once, when it is through. Waits while it is drained. Throws `cancelled`. */
  lease(signal: AbortSignal): Promise<() => void>;
  /**
   * Resolves when nobody uses it any more; those who come meanwhile wait until the result is called. Drains follow one
   * another in order. Throws `cancelled` when the signal aborts first; then those who wait get in.
   */
  drain(signal: AbortSignal): Promise<() => void>;
  users(): number;
}

interface Waiter {
  readonly kind: "lease" | "drain";
  letIn(): void;
}

export function createLeases(): Leases {
  const line: Waiter[] = [];
  let users = 0;
  let drained = false;

  /** In the order of their coming: a drain is never overtaken, or a busy engine would never change. */
  function advance(): void {
    for (let next = line[0]; next; next = line[0]) {
      if (drained || (next.kind === "drain" && users > 0)) return;
      line.shift();
      if (next.kind === "drain") drained = true;
      else users++;
      next.letIn();
    }
  }

  function enter(kind: Waiter["kind"], signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(left());
        return;
      }
      const leave = (): void => {
        line.splice(line.indexOf(waiter), 1);
        reject(left());
        advance();
      };
      const waiter: Waiter = {
        kind,
        letIn: () => {
          signal.removeEventListener("abort", leave);
          resolve(once(kind));
        },
      };
      line.push(waiter);
      signal.addEventListener("abort", leave, { once: true });
      advance();
    });
  }

  function once(kind: Waiter["kind"]): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (kind === "drain") drained = false;
      else users--;
      advance();
    };
  }

  return {
    lease: (signal) => enter("lease", signal),
    drain: (signal) => enter("drain", signal),
    users: () => users,
  };
}

function left(): GatewayError {
  return new GatewayError("cancelled", "it is no longer wanted");
}
