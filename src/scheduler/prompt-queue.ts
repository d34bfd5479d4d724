// Limits the bytes of large prompts that one model reads at once. The engine reads a prompt in a thread that cannot be canceled:
// 64 MB take 6 s and 2 GB of memory, and eight at once delayed all other requests by a minute. Small prompts pass. A permit ends
// when the engine begins to answer, or has closed the connection of a client that left.
import { clientLeftError, GatewayError } from "../core/errors.ts";
import type { Scheduler } from "./scheduler.ts";

export interface PromptPermit {
  /** The prompt is sent; call the result when the engine has read it. `left`: aborted when the client left. */
  send(left: AbortSignal): () => void;
  /** Ends the permit of a prompt that was not sent. */
  end(): void;
}

export interface PromptQueue {
  /** Resolves when the prompt may be sent to the model's process; null: it is small. Errors: `busy`, `cancelled`, `shutting_down`. */
  enter(id: string, bytes: number, signal: AbortSignal): Promise<PromptPermit | null>;
}

/** Bytes of a prompt that needs no permit. */
const smallPrompt = 1 << 20;

export function needsPermit(bytes: number): boolean {
  return bytes > smallPrompt;
}

/** Bytes of permits at once; a larger prompt is read alone. */
const mostAtOnce = 16 << 20;
/** Bytes that wait in this process's memory. */
const mostWaiting = 512 << 20;
/** ms that the engine may spend on a prompt whose client left while other large prompts wait. */
const defaultLeftMs = 60_000;

interface Queue {
  bytes: number;
  readonly waiting: { readonly bytes: number; readonly begin: () => void }[];
}

export function createPromptQueue(options: {
  readonly enter: Scheduler["enter"];
  /** The instance is still busy with a prompt whose client left long ago. */
  readonly onStuck: (id: string) => void;
  readonly leftMs?: number;
}): PromptQueue {
  const queues = new Map<string, Queue>();

  function advance(id: string, queue: Queue): void {
    for (let [next] = queue.waiting; next; [next] = queue.waiting) {
      if (queue.bytes > 0 && queue.bytes + next.bytes > mostAtOnce) return;
      queue.waiting.shift();
      queue.bytes += next.bytes;
      next.begin();
    }
    if (queue.bytes === 0) queues.delete(id);
  }

  function begun(id: string, queue: Queue, bytes: number): PromptPermit {
    let timer: NodeJS.Timeout | undefined;
    let isSent = false;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      clearInterval(timer);
      queue.bytes -= bytes;
      advance(id, queue);
    };
    const watch = (): void => {
      if (isOver) return;
      timer ??= setInterval(() => {
        if (queue.waiting.length > 0) options.onStuck(id);
      }, options.leftMs ?? defaultLeftMs).unref();
    };
    return {
      send: (left) => {
        isSent = true;
        left.addEventListener("abort", watch, { once: true });
        return over;
      },
      end: () => {
        if (!isSent) over();
      },
    };
  }

  return {
    enter: async (id, bytes, signal) => {
      if (!needsPermit(bytes)) return null;
      if (signal.aborted) throw clientLeftError();
      const queue = queues.get(id) ?? { bytes: 0, waiting: [] };
      const waiting = queue.waiting.reduce((sum, entry) => sum + entry.bytes, 0);
      if (waiting + bytes > mostWaiting)
        throw new GatewayError("busy", `prompts of ${waiting} bytes wait for ${id}`, { retryAfterMs: 5_000 });
      let end: (error: GatewayError) => void = () => undefined;
      const entrance = options.enter(id, "turn", (error) => end(error));
      const left = (): void => end(clientLeftError());
      signal.addEventListener("abort", left, { once: true });
      queues.set(id, queue);
      try {
        await new Promise<void>((resolve, reject) => {
          const entry = { bytes, begin: resolve };
          queue.waiting.push(entry);
          end = (error) => {
            const at = queue.waiting.indexOf(entry);
            if (at >= 0) queue.waiting.splice(at, 1);
            reject(error);
          };
          advance(id, queue);
        });
      } finally {
        signal.removeEventListener("abort", left);
        entrance.leave();
      }
      return begun(id, queue, bytes);
    },
  };
}
