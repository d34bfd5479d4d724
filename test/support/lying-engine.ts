// A llama-server in router mode as far as the gateway asks one: its models load, are healthy, and answer every request with 500 while
// a file `lies` stands in its working folder, or while their section has `ctx-size = 1024`. A file `silent`: with nothing at all.
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const args = process.argv.slice(2);
const valueOf = (flag: string): string => args[args.indexOf(flag) + 1] ?? "";

if (args.includes("--help")) {
  console.log(["-c, --ctx-size N  size", "--hf-repo REPO  repo", "--offline", "--tags T"].join("\n"));
  process.exit(0);
}

type Section = Readonly<Record<string, string>>;
const running = new Map<string, { readonly port: number; readonly end: () => void }>();
const followers = new Set<ServerResponse>();
let sections = new Map<string, Section>();

function readPreset(): void {
  const before = sections;
  sections = new Map(
    readFileSync(valueOf("--models-preset"), "utf8")
      .split(/^\[/m)
      .slice(1)
      .map((block) => {
        const [name = "", ...lines] = block.split(/\]|\n/);
        return [name, Object.fromEntries(lines.flatMap((line) => [/^([a-z-]+) = (.*)$/.exec(line)?.slice(1) ?? []]))];
      }),
  );
  for (const [id, { end }] of running) if (JSON.stringify(before.get(id)) !== JSON.stringify(sections.get(id))) end();
}

function list(): object {
  const ids = [...sections.keys()].filter((name) => name !== "*");
  const data = ids.map((id) => {
    const port = running.get(id)?.port ?? 0;
    const given = Object.entries(sections.get(id) ?? {}).flatMap(([key, value]) => [`--${key}`, value]);
    const status = { value: port > 0 ? "loaded" : "unloaded", args: ["llama-server", "--port", `${port}`, ...given] };
    return { id, status, ...(port > 0 ? { meta: { n_ctx: 512 } } : {}) };
  });
  return { data };
}

function tell(model: string, status: string): void {
  const event = JSON.stringify({ model, event: "status_change", data: { status } });
  for (const follower of followers) follower.write(`data: ${event}\n\n`);
}

/** A model's process. */
function load(id: string): Promise<void> {
  const server = createServer((request, response) => {
    if (request.url === "/health") return send(response, 200, { status: "ok" });
    if (existsSync("silent")) return;
    const isLying = existsSync("lies") || sections.get(id)?.["ctx-size"] === "1024";
    if (isLying) return send(response, 500, { error: { message: "Compute error." } });
    const message = { role: "assistant", content: `hello from ${id}` };
    send(response, 200, { content: "h", choices: [{ index: 0, finish_reason: "stop", message }] });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const end = (): void => {
        running.delete(id);
        server.close();
        server.closeAllConnections();
        tell(id, "unloaded");
      };
      running.set(id, { port: (server.address() as AddressInfo).port, end });
      tell(id, "loaded");
      resolve();
    });
  });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<{ readonly model: string }> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as { readonly model: string };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = "", query = ""] = (request.url ?? "").split("?");
  if (path === "/health") return send(response, 200, { status: "ok" });
  if (path === "/models/sse") {
    followers.add(response.writeHead(200, { "content-type": "text/event-stream" }));
    response.flushHeaders();
    return void response.on("close", () => followers.delete(response));
  }
  if (path === "/models/load") await load((await bodyOf(request)).model);
  if (path === "/models/unload") running.get((await bodyOf(request)).model)?.end();
  if (query.includes("reload=1")) readPreset();
  send(response, 200, list());
}

readPreset();
createServer((request, response) => void answer(request, response)).listen(
  Number(valueOf("--port")),
  valueOf("--host"),
);
process.on("SIGTERM", () => process.exit(0));
