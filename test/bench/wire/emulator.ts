// A model's process on llama-server's wire, faster than any proxy: what it costs is not what is measured. Prints its port; ends with
// its standard input. The request sets the answer: `stream`, `max_tokens` (events), `pace` (ms between two events; 0: at once).
import { createServer, type Socket } from "node:net";

const end = "\r\n\r\n";
const events = 64;

const text = '"choices":[{"finish_reason":null,"index":0,"delta":{"content":" token"}}]';
const rest =
  '"created":1790000000,"id":"chatcmpl-X3vq0s6Zt1kPb7","model":"acme/bench:Q8_0","system_fingerprint":"b11669-0"';
const usage = '"usage":{"completion_tokens":1,"prompt_tokens":9,"total_tokens":10}';

/** llama-server has one chunk per event. */
function chunked(data: string): string {
  const event = `data: ${data}\n\n`;
  return `${event.length.toString(16)}\r\n${event}\r\n`;
}

const event = (at: string): string => chunked(`{${text},${rest},"object":"chat.completion.chunk","t":${at}}`);
const one = event("1000000000");
const block = Buffer.from(one.repeat(events));
const last = Buffer.from(
  `${chunked(`{"choices":[{"finish_reason":"length","index":0,"delta":{}}],${rest}}`)}${chunked(`{"choices":[],${rest},${usage}}`)}${chunked("[DONE]")}0${end}`,
);
const whole = `{"choices":[{"finish_reason":"length","index":0,"message":{"role":"assistant","content":"Hi"}}],${rest},${usage}}`;
const kept = "Server: llama.cpp\r\nKeep-Alive: timeout=5, max=100\r\n";
const json = "Content-Type: application/json; charset=utf-8";
const answer = Buffer.from(`HTTP/1.1 200 OK\r\n${kept}Content-Length: ${whole.length}\r\n${json}${end}${whole}`);
const streamHead = Buffer.from(
  `HTTP/1.1 200 OK\r\n${kept}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked${end}`,
);

function stream(socket: Socket, count: number, pace: number): void {
  let left = count;
  socket.write(streamHead);
  // llama-server closes its connection after a stream, whatever its headers say.
  if (pace === 0) {
    const talk = (): void => {
      while (left > 0 && !socket.destroyed) {
        const now = Math.min(left, events);
        left -= now;
        if (!socket.write(now === events ? block : block.subarray(0, now * one.length))) return;
      }
      if (left === 0) socket.end(last);
      left = -1;
    };
    socket.on("drain", talk);
    return talk();
  }
  const timer = setInterval(() => {
    socket.write(event((performance.timeOrigin + performance.now()).toFixed(2)));
    if (--left > 0) return;
    clearInterval(timer);
    socket.end(last);
  }, pace);
  socket.on("close", () => clearInterval(timer));
}

function serve(socket: Socket): void {
  let head = "";
  let missing = 0;
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes) => {
    if (missing > 0) {
      missing -= bytes.length;
      if (head.length < 4096) head += bytes.toString("latin1", 0, 4096);
    } else {
      head += bytes.toString("latin1", 0, 8192);
      const at = head.indexOf(end);
      if (at < 0) return;
      missing = at + end.length + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) - bytes.length;
    }
    if (missing > 0) return;
    const asked = head;
    head = "";
    if (!asked.includes('"stream":true')) return void socket.write(answer);
    stream(socket, Number(/"max_tokens":(\d+)/.exec(asked)?.[1] ?? 1), Number(/"pace":(\d+)/.exec(asked)?.[1] ?? 0));
  });
}

const server = createServer(serve).listen(0, "127.0.0.1", 1024, () => {
  const address = server.address();
  console.log(typeof address === "object" ? address?.port : address);
});
process.stdin.resume().on("end", () => process.exit());
