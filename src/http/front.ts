// The bare address, and the status page: for browsers a page, for API clients a line. The page's files are built into `dist/page`.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ok, textSchema } from "../../schemas/route.ts";
import { GatewayError } from "../core/errors.ts";
import { packageRoot } from "../settings/settings.ts";
import { routesOf } from "./server/route.ts";

const pageFiles = {
  "index.html": "text/html; charset=utf-8",
  "page.js": "text/javascript; charset=utf-8",
  "page.css": "text/css; charset=utf-8",
  "icon.svg": "image/svg+xml",
} as const;

type PageFile = keyof typeof pageFiles;

interface Asset {
  readonly plain: Buffer;
  readonly gzip: Buffer;
  readonly etag: string;
}

/** Read when a browser asks first: most gateways serve programs only. */
const assets = new Map<PageFile, Asset>();

const headers = {
  // Nothing from elsewhere, nothing inline: a model's answer on the page cannot become a script.
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  // A license key may be in the address.
  "referrer-policy": "no-referrer",
  // Asked for again each time: after an update the page must fit its gateway.
  "cache-control": "no-cache",
} as const;

/** Ollama's clients look here whether there is a server. */
export const frontRoute = routesOf<{ readonly hasPage: boolean }>().get("/", {
  config: { licenseKey: "none" },
  operationId: "front",
  summary: "Check which server answers",
  response: ok("A word of greeting; for a browser the status page.", {
    content: { "text/plain": { schema: textSchema }, "text/html": { schema: textSchema } },
  }),
  handler: ({ hasPage }, request, reply) => {
    void reply.header("vary", "accept, accept-encoding");
    if (hasPage && request.headers.accept?.includes("text/html")) return sendFile("index.html", request, reply);
    return reply.type("text/plain").send("Ollama is running: this is Model Gateway, which speaks its API too.\n");
  },
});

const { get } = routesOf<unknown>();

export const pageRoutes = [
  get("/ui", {
    config: { licenseKey: "none" },
    operationId: "page",
    summary: "Open the status page",
    response: ok("The page.", { content: { "text/html": { schema: textSchema } } }),
    handler: (_deps, request, reply) => {
      // Its links are relative, so that it works below the path of a proxy: there must be no slash at the end.
      if (/\/(?:$|\?)/.test(request.url)) return reply.redirect("../ui", 308);
      return sendFile("index.html", request, reply);
    },
  }),
  get("/ui/:file", {
    config: { licenseKey: "none", errors: ["not_found"] },
    operationId: "pageFile",
    summary: "Get a file of the status page",
    params: { file: { enum: Object.keys(pageFiles) } },
    response: ok("The file.", { content: { "text/javascript": { schema: textSchema } } }),
    handler: (_deps, request, reply) => {
      const { file = "" } = request.params;
      if (!Object.hasOwn(pageFiles, file)) throw new GatewayError("not_found", `the status page has no file ${file}`);
      return sendFile(file as PageFile, request, reply);
    },
  }),
];

function sendFile(file: PageFile, { headers: asked }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { plain, gzip, etag } = assetOf(file);
  void reply.headers({ vary: "accept, accept-encoding", ...headers, etag });
  if (asked["if-none-match"] === etag) return reply.code(304).send();
  void reply.type(pageFiles[file]);
  if (!/\bgzip\b/.test(String(asked["accept-encoding"] ?? ""))) return reply.send(plain);
  return reply.header("content-encoding", "gzip").send(gzip);
}

function assetOf(file: PageFile): Asset {
  const known = assets.get(file);
  if (known) return known;
  const plain = readFileSync(join(packageRoot, "dist", "page", file));
  const etag = `"${createHash("sha256").update(plain).digest("hex").slice(0, 16)}"`;
  const asset = { plain, gzip: gzipSync(plain, { level: 9 }), etag };
  assets.set(file, asset);
  return asset;
}
