// The least that a proxy on this platform does: fastify, `hijack`, undici's `dispatch`, one write per turn of the event loop. It
// checks no key, admits everything, counts nothing. Argument: the port of the model's process. Prints its own; ends with its
// standard input.
import Fastify from "fastify";
import { Agent } from "undici";

const origin = `http://127.0.0.1:${process.argv[2]}`;
const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
const app = Fastify({ bodyLimit: 64 << 20 });
app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

app.post("/v1/chat/completions", (request, reply) => {
  reply.hijack();
  const { raw } = reply;
  const body = request.body as Buffer;
  let pending: Buffer[] = [];
  const flush = (): void => {
    if (pending.length > 0) raw.write(pending.length === 1 ? pending[0] : Buffer.concat(pending));
    pending = [];
  };
  agent.dispatch(
    {
      origin,
      path: "/v1/chat/completions",
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      reset: body.subarray(0, 200).includes('"stream":true'),
    },
    {
      onRequestStart: (controller) => {
        raw.on("drain", () => controller.resume());
        raw.on("close", () => {
          if (!raw.writableFinished) controller.abort(new Error("the client left"));
        });
      },
      onResponseStart: (_controller, status, headers) => {
        const length = headers["content-length"];
        raw.writeHead(status, {
          "content-type": String(headers["content-type"]),
          ...(length === undefined ? {} : { "content-length": String(length) }),
        });
      },
      onResponseData: (controller, chunk) => {
        if (pending.push(chunk) === 1) process.nextTick(flush);
        if (raw.writableNeedDrain) controller.pause();
      },
      onResponseEnd: () => {
        flush();
        raw.end();
      },
      onResponseError: () => raw.destroy(),
    },
  );
});

console.log(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port);
process.stdin.resume().on("end", () => process.exit());
