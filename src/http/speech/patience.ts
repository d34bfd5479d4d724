// Connections whose request may be longer on its way than the server's time for receiving one: an upload that waits in line
// is not read meanwhile. Whoever asks for that has a rule of his own against silence.

import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { systemCode } from "../../core/errors.ts";

const patient = new WeakSet<Socket>();

/** Call the result when the request is over: the next one on this connection has no more time than any other. */
export function grantTime(socket: Socket): () => void {
  patient.add(socket);
  return () => void patient.delete(socket);
}

/** Node reports a request that takes too long once, and leaves it to the listeners to end it. */
export function installPatience(app: FastifyInstance): void {
  app.addHook("onReady", (done) => {
    const { server } = app;
    const listeners = server.listeners("clientError") as ((error: Error, socket: Socket) => void)[];
    server.removeAllListeners("clientError");
    server.on("clientError", (error: Error, socket: Socket) => {
      if (systemCode(error) === "ERR_HTTP_REQUEST_TIMEOUT" && patient.has(socket)) return;
      for (const listener of listeners) listener.call(server, error, socket);
    });
    done();
  });
}
