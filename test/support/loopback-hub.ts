// A hub on loopback for tests: its API on one origin, its storage ("CDN") on another, as the public hub has it.
// Checked against real clients in test/component/hub-stand-in.test.ts and test/engine/loopback-hub.test.ts.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { commitOf, fileEntry, modelInfo, type RepoOptions, refsOf, searchRepos, type StoredFile, type StoredRepo, storeCommit, treeEntries } from "./loopback-hub-repos.ts";

export interface HubRequest {
  readonly origin: "hub" | "storage";
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly authorized: boolean;
  readonly range: string | undefined;
}

export interface Failure {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the next request of any kind. */
  match?(request: HubRequest): boolean;
  /** How many requests fail; default 1. */
  readonly times?: number;
}

export interface Hold {
  /** Resolves when the storage has sent that many bytes and waits. */
  readonly reached: Promise<void>;
  /** Resolves when the client went away while it was held. */
  readonly left: Promise<void>;
  release(): void;
}

export interface LoopbackHub {
  readonly endpoint: string;
  readonly storage: string;
  readonly requests: readonly HubRequest[];
  /** Answers with the commit. */
  addRepo(repo: string, options: RepoOptions): string;
  /** A new commit on main; `files` is all that it has. Older commits stay. */
  updateRepo(repo: string, options: Pick<RepoOptions, "files" | "commit">): string;
  /** The storage stops after `bytes` of a file, until released. Once. */
  throttle(path: string, bytes: number): Hold;
  /** From now on every copy of a file goes out with a bit flipped. */
  corrupt(path: string): void;
  /** The storage cuts the connection after `bytes` of a file. `times` default 1. */
  dropAfter(path: string, bytes: number, times?: number): void;
  failNext(failure: Failure): void;
  /** The next API or file requests are answered 429. */
  rateLimit(limit: { readonly seconds: number; readonly times?: number }): void;
  /** From now on every request to the hub needs this token; it opens private and gated repositories too. */
  requireToken(token: string): void;
  close(): Promise<void>;
}

export interface LoopbackHubOptions {
  /** Entries on a page of a listing; default 1000, as the public hub has it. */
  readonly pageSize?: number;
  /** Tokens that open private and gated repositories. */
  readonly tokens?: readonly string[];
}

interface Reply {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
}

/** Starts the hub; closed after the test. */
export async function startLoopbackHub(t: { after(fn: () => Promise<void>): void }, options: LoopbackHubOptions = {}): Promise<LoopbackHub> {
  const repos = new Map<string, StoredRepo>();
  const requests: HubRequest[] = [];
  const tokens = new Set(options.tokens ?? []);
  const corrupted = new Set<string>();
  const drops = new Map<string, { bytes: number; times: number }>();
  const holds = new Map<string, { bytes: number; reached(): void; left(): void; released: Promise<void> }>();
  const failures: (Failure & { left: number })[] = [];
  const pageSize = options.pageSize ?? 1000;
  let required: string | undefined;

  const hubServer = createServer((request, response) => handle("hub", request, response));
  const storageServer = createServer((request, response) => handle("storage", request, response));
  const endpoint = await listen(hubServer);
  const storage = await listen(storageServer);

  function handle(origin: "hub" | "storage", request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", origin === "hub" ? endpoint : storage);
    const seen = { origin, method: request.method ?? "", path: url.pathname + url.search, authorized: request.headers.authorization !== undefined, range: request.headers.range };
    requests.push(seen);
    const reply = { request, response, url };
    const failure = failures.find((candidate) => candidate.left > 0 && (candidate.match?.(seen) ?? true));
    if (failure) {
      failure.left--;
      response.writeHead(failure.status, failure.headers).end(failure.body ?? "");
    } else if (origin === "storage") {
      void answerStorage(reply);
    } else {
      answerHub(reply);
    }
  }

  function accepted(request: IncomingMessage): boolean {
    return tokens.has(/^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "");
  }

  function answerHub(reply: Reply): void {
    const { request, response, url } = reply;
    response.setHeader("RateLimit", '"api";r=499;t=300');
    response.setHeader("RateLimit-Policy", '"fixed window";"api";q=500;w=300');
    if (required !== undefined && !accepted(request)) return refuse(response, 401, undefined, "Invalid credentials in Authorization header");
    if (url.pathname === "/api/models") return answerSearch(reply);
    const api = /^\/api\/models\/([^/]+\/[^/]+)(?:\/(refs|tree|revision|paths-info)(?:\/([^/]+)(?:\/(.*))?)?)?$/.exec(url.pathname);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(url.pathname);
    const repo = repos.get(api?.[1] ?? file?.[1] ?? "");
    const known = accepted(request);
    if (!api && !file) return refuse(response, 404, undefined, "Sorry, we can't find the page you are looking for.");
    if (!repo || (repo.options.private && !known)) {
      return refuse(response, known ? 404 : 401, "RepoNotFound", known ? "Repository not found" : "Invalid username or password.");
    }
    if (file && repo.options.gated && !known) {
      const status = request.headers.authorization === undefined ? 401 : 403;
      return refuse(response, status, "GatedRepo", `Access to model ${repo.name} is restricted and you are not in the authorized list.`);
    }
    if (api?.[2] === "refs") return sendJson(response, refsOf(repo));
    const commit = commitOf(repo, decodeURIComponent(api?.[3] ?? file?.[2] ?? "main"));
    if (commit === undefined) return refuse(response, 404, "RevisionNotFound", "Invalid rev id");
    if (file) return answerResolve(reply, repo, commit, decodeURIComponent(file[3] ?? ""));
    if (api?.[2] === "tree") {
      const recursive = url.searchParams.get("recursive") === "true";
      return sendPage(reply, treeEntries(repo, commit, decodeURIComponent(api[4] ?? ""), recursive), pageSize);
    }
    if (api?.[2] === "paths-info") return void answerPaths(reply, repo, commit);
    sendJson(response, modelInfo(repo, commit));
  }

  function answerSearch(reply: Reply): void {
    const limit = Math.min(Number(reply.url.searchParams.get("limit") ?? pageSize), pageSize);
    sendPage(reply, searchRepos(repos.values(), reply.url.searchParams).map((repo) => modelInfo(repo, repo.head)), limit);
  }

  async function answerPaths({ request, response }: Reply, repo: StoredRepo, commit: string): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { paths }: { paths: string[] } = JSON.parse(body);
    const files = [...(repo.commits.get(commit) ?? [])].filter(([path]) => paths.includes(path));
    sendJson(response, files.map(([path, file]) => ({ ...fileEntry(path, file), lastCommit: { id: commit, title: "", date: "2025-01-01T00:00:00.000Z" } })));
  }

  function answerResolve({ request, response }: Reply, repo: StoredRepo, commit: string, path: string): void {
    const file = repo.commits.get(commit)?.get(path);
    response.setHeader("X-Repo-Commit", commit);
    if (!file) return refuse(response, 404, "EntryNotFound", "Entry not found");
    response.setHeader("Accept-Ranges", "bytes");
    if (!file.lfs) {
      response.setHeader("ETag", `"${file.oid}"`);
      return void sendBytes({ request, response, path, bytes: file.bytes });
    }
    response.setHeader("X-Linked-Etag", `"${file.sha256}"`);
    response.setHeader("X-Linked-Size", String(file.bytes.length));
    response.setHeader("ETag", `"${file.oid}"`);
    const query = new URLSearchParams({ Expires: "4102444800", Signature: signature(file), path });
    response.writeHead(302, { Location: `${storage}/${repo.name}/${file.sha256}?${query.toString()}` }).end(`Found. Redirecting`);
  }

  async function answerStorage({ request, response, url }: Reply): Promise<void> {
    const sha256 = url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
    const path = url.searchParams.get("path") ?? "";
    const file = [...repos.values()].flatMap((repo) => [...repo.commits.values()]).flatMap((files) => [...files.values()]).find((entry) => entry.sha256 === sha256);
    // Real storage takes one way of authorization only: a token beside the signature is an error there.
    if (request.headers.authorization !== undefined) return void response.writeHead(400).end("Only one auth mechanism allowed");
    if (!file || url.searchParams.get("Signature") !== signature(file)) return void response.writeHead(403).end("SignatureDoesNotMatch");
    response.setHeader("Accept-Ranges", "bytes");
    response.setHeader("ETag", `"${createHash("md5").update(file.bytes).digest("hex")}-1"`);
    await sendBytes({ request, response, path, bytes: file.bytes });
  }

  async function sendBytes({ request, response, path, bytes: stored }: { request: IncomingMessage; response: ServerResponse; path: string; bytes: Buffer }): Promise<void> {
    const bytes = corrupted.has(path) ? flipped(stored) : stored;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const from = range ? Number(range[1]) : 0;
    const to = Math.min(range?.[2] ? Number(range[2]) : Number.POSITIVE_INFINITY, bytes.length - 1);
    if (range && from >= bytes.length) return void response.writeHead(416, { "Content-Range": `bytes */${bytes.length}` }).end();
    if (range) response.setHeader("Content-Range", `bytes ${from}-${to}/${bytes.length}`);
    response.writeHead(range ? 206 : 200, { "Content-Type": "application/octet-stream", "Content-Length": to - from + 1 });
    if (request.method === "HEAD") return void response.end();

    const part = bytes.subarray(from, to + 1);
    const drop = drops.get(path);
    if (drop && drop.times > 0 && part.length > drop.bytes) {
      drop.times--;
      return void response.write(part.subarray(0, drop.bytes), () => response.destroy());
    }
    const hold = holds.get(path);
    if (hold && part.length > hold.bytes) {
      holds.delete(path);
      response.on("close", hold.left);
      if (hold.bytes > 0) await new Promise<void>((resolve) => response.write(part.subarray(0, hold.bytes), () => resolve()));
      else response.flushHeaders();
      hold.reached();
      await hold.released;
      return void response.end(part.subarray(hold.bytes));
    }
    response.end(part);
  }

  function commit(name: string, repoOptions: RepoOptions): string {
    const stored = storeCommit(repos.get(name), name, repoOptions);
    repos.set(name, stored);
    return stored.head;
  }

  const hub: LoopbackHub = {
    endpoint,
    storage,
    requests,
    addRepo: commit,
    updateRepo: commit,
    throttle(path, bytes) {
      const reached = signal();
      const left = signal();
      const released = signal();
      holds.set(path, { bytes, reached: reached.fire, left: left.fire, released: released.promise });
      return { reached: reached.promise, left: left.promise, release: released.fire };
    },
    corrupt: (path) => void corrupted.add(path),
    dropAfter: (path, bytes, times = 1) => void drops.set(path, { bytes, times }),
    failNext: (failure) => void failures.push({ ...failure, left: failure.times ?? 1 }),
    rateLimit: ({ seconds, times = 1 }) =>
      hub.failNext({ status: 429, times, headers: { RateLimit: `"api";r=0;t=${seconds}` }, body: '{"error":"Too many requests"}', match: ({ origin }) => origin === "hub" }),
    requireToken(token) {
      required = token;
      tokens.add(token);
    },
    async close() {
      await Promise.all([hubServer, storageServer].map((server) => new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      })));
    },
  };
  t.after(() => hub.close());
  return hub;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return `http://127.0.0.1:${address.port}`;
}

function signature(file: StoredFile): string {
  return createHash("sha256").update(`signed ${file.sha256}`).digest("hex");
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8((copy[copy.length - 1] ?? 0) ^ 1, copy.length - 1);
  return copy;
}

function signal(): { readonly promise: Promise<void>; fire(): void } {
  let fire: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    fire = resolve;
  });
  return { promise, fire: () => fire() };
}

function refuse(response: ServerResponse, status: number, code: string | undefined, message: string): void {
  const headers = { "Content-Type": "application/json", "X-Error-Message": message, ...(code ? { "X-Error-Code": code } : {}) };
  response.writeHead(status, headers).end(JSON.stringify({ error: message }));
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}

/** A page of a listing, with the address of the next one in Link. */
function sendPage({ response, url }: Reply, entries: readonly unknown[], size: number): void {
  const start = Number(Buffer.from(url.searchParams.get("cursor") ?? "", "base64url").toString() || "0");
  if (start + size < entries.length) {
    const next = new URL(url);
    next.searchParams.set("cursor", Buffer.from(String(start + size)).toString("base64url"));
    response.setHeader("Link", `<${next.href}>; rel="next"`);
  }
  sendJson(response, entries.slice(start, start + size));
}
