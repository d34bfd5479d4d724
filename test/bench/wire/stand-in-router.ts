// The engine's router for a gateway whose first model is the emulator. Arguments as llama-server's, after the ids of its models,
// separated by commas, and the emulator's port.
import { createServer } from "node:http";

const [ids = "", modelPort = "", ...args] = process.argv.slice(2);
let value = "unloaded";

const server = createServer((request, response) => {
  const { method, url = "" } = request;
  request.resume();
  if (url === "/models/sse") return response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  if (method === "POST") value = url === "/models/load" ? "loaded" : "unloaded";
  const list = ids.split(",").map((id, at) => ({
    id,
    status:
      at === 0
        ? { value, args: ["llama-server", "--parallel", "512", "--port", modelPort] }
        : { value: "unloaded", args: [] },
    meta: { n_ctx: 4096 },
  }));
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(url.startsWith("/models") && method === "GET" ? { data: list } : { success: true }));
});

if (args.includes("--help")) console.log("-c,    --ctx-size N   size of the prompt context");
else server.listen(Number(args[args.indexOf("--port") + 1]), "127.0.0.1");
