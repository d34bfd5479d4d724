// One question to the router or to a model's process, over a connection of its own, and the whole answer.
import { Connection, type ConnectionListener } from "./connections.ts";
import type { Instance } from "./instances.ts";

export interface Question {
  readonly path: string;
  /** JSON; absent: asks with GET. */
  readonly body?: object | undefined;
}

export interface EngineAnswer {
  readonly status: number;
  readonly text: string;
}

/** The router closes its connections after many responses: one per call never meets a dead one. */
export const unshared: ConnectionListener = {
  onIdle: () => undefined,
  onSpent: () => undefined,
  onClosed: () => undefined,
};

/** `withinMs`: by default it waits until the process ends. Errors: that of the connection; that there was no response in time. */
export function askServer(
  server: Pick<Instance, "origin" | "key">,
  { path, body }: Question,
  withinMs?: number,
): Promise<EngineAnswer> {
  const request = { path, body: body === undefined ? null : [Buffer.from(JSON.stringify(body))], isLast: true };
  return new Promise((resolve, reject) => {
    const connection = new Connection(server.origin, unshared);
    const isLate = (): void => connection.end(new Error(`there was no response within ${withinMs} ms`));
    const timer = withinMs === undefined ? undefined : setTimeout(isLate, withinMs).unref();
    const said: Buffer[] = [];
    let status = 0;
    connection.send(server, request, {
      onHead: (code) => {
        status = code;
      },
      onBody: (bytes) => said.push(Buffer.from(bytes)) > 0,
      onEnd: () => {
        clearTimeout(timer);
        resolve({ status, text: Buffer.concat(said).toString() });
      },
      onFailed: (error) => {
        clearTimeout(timer);
        reject(error ?? new Error("the connection was closed"));
      },
    });
  });
}
