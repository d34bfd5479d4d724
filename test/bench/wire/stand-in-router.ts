// The engine's router for a gateway whose only model is the emulator. Arguments as llama-server's, after the model's id and the
// emulator's port.
import { createServer } from "node:http";

const [id, modelPort = "", ...args] = process.argv.slice(2);
let value = "unloaded";

const server = createServer((request, response) => {
  const { method, url = "" } = request;
  request.resume();
  if (url === "/models/sse") return response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  if (method === "POST") value = url === "/models/load" ? "loaded" : "unloaded";
  const list = [
    { id, status: { value, args: ["llama-server", "--parallel", "512", "--port", modelPort] }, meta: { n_ctx: 4096 } },
  ];
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(url.startsWith("/models") && method === "GET" ? { data: list } : { success: true }));
});

if (args.includes("--help")) console.log("-c,    --ctx-size N   size of the prompt context");
else server.listen(Number(args[args.indexOf("--port") + 1]), "127.0.0.1");
