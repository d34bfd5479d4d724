// A hub on loopback for tests: its API on one origin, its storage ("CDN") on another, as the public hub has it.
// Checked against real clients in test/component/hub-stand-in.test.ts and test/engine/loopback-hub.test.ts.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { cleanUp } from "./clean-up.ts";
import { createByteSender, type Troubles } from "./loopback-hub-bytes.ts";
import { type Reply, refuse, sendJson, sendPage } from "./loopback-hub-replies.ts";
import {
  commitOf,
  fileEntry,
  listedInfo,
  modelInfo,
  type RepoOptions,
  refsOf,
  type StoredFile,
  type StoredRepo,
  searchRepos,
  storeCommit,
  treeEntries,
} from "./loopback-hub-repos.ts";

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
  /** Default: any request. */
  match?(request: HubRequest): boolean;
  /** How many requests fail; default 1. */
  readonly times?: number;
}

export interface LoopbackHub extends Troubles {
  readonly endpoint: string;
  readonly storage: string;
  readonly requests: readonly HubRequest[];
  /** Answers with the commit. */
  addRepo(repo: string, options: RepoOptions): string;
  /** A new commit on main; `files` is all that it has. Older commits stay. */
  updateRepo(repo: string, options: Pick<RepoOptions, "files" | "commit">): string;
  removeRepo(repo: string): void;
  /** The next request that matches is answered with a failure. */
  failNext(failure: Failure): void;
  /** The next requests to the hub (not its storage) are answered 429. */
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

const apiPattern = /^\/api\/models\/([^/]+\/[^/]+)(?:\/(refs|tree|revision|paths-info)(?:\/([^/]+)(?:\/(.*))?)?)?$/;
const filePattern = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/;

/** Starts the hub; closed after the test. */
export async function startLoopbackHub(
  t: { after(fn: () => Promise<void>): void },
  options: LoopbackHubOptions = {},
): Promise<LoopbackHub> {
  const repos = new Map<string, StoredRepo>();
  const requests: HubRequest[] = [];
  const tokens = new Set(options.tokens ?? []);
  const failures: (Failure & { left: number })[] = [];
  const pageSize = options.pageSize ?? 1000;
  const { troubles, send } = createByteSender();
  let required: string | undefined;

  const hubServer = createServer((request, response) => void handle("hub", request, response));
  const storageServer = createServer((request, response) => void handle("storage", request, response));
  const endpoint = await listen(hubServer);
  const storage = await listen(storageServer);

  async function handle(origin: "hub" | "storage", request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", origin === "hub" ? endpoint : storage);
    const { authorization, range } = request.headers;
    const path = url.pathname + url.search;
    const seen = { origin, method: request.method ?? "", path, authorized: authorization !== undefined, range };
    requests.push(seen);
    const failure = failures.find((candidate) => candidate.left > 0 && (candidate.match?.(seen) ?? true));
    if (failure) {
      failure.left--;
      response.writeHead(failure.status, failure.headers).end(failure.body ?? "");
      return;
    }
    await (origin === "hub" ? answerHub : answerStorage)({ request, response, url });
  }

  function accepted(request: IncomingMessage): boolean {
    return tokens.has(/^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "");
  }

  async function answerHub(reply: Reply): Promise<void> {
    const { request, response, url } = reply;
    response.setHeader("RateLimit", '"api";r=499;t=300');
    response.setHeader("RateLimit-Policy", '"fixed window";"api";q=500;w=300');
    const api = apiPattern.exec(url.pathname);
    const file = filePattern.exec(url.pathname);
    const repo = repos.get(api?.[1] ?? file?.[1] ?? "");
    const known = accepted(request);
    if (required !== undefined && !known) {
      refuse(response, 401, undefined, "Invalid credentials in Authorization header");
    } else if (url.pathname === "/api/models") {
      answerSearch(reply);
    } else if (!api && !file) {
      refuse(response, 404, undefined, "Sorry, we can't find the page you are looking for.");
    } else if (!repo || (repo.options.private && !known)) {
      const message = known ? "Repository not found" : "Invalid username or password.";
      refuse(response, known ? 404 : 401, "RepoNotFound", message);
    } else if (file && repo.options.gated && !known) {
      const message = `Access to model ${repo.name} is restricted and you are not in the authorized list.`;
      refuse(response, request.headers.authorization === undefined ? 401 : 403, "GatedRepo", message);
    } else if (api?.[2] === "refs") {
      sendJson(response, refsOf(repo));
    } else {
      const commit = commitOf(repo, decodeURIComponent(api?.[3] ?? file?.[2] ?? "main"));
      if (commit === undefined) refuse(response, 404, "RevisionNotFound", "Invalid rev id");
      else if (file) await answerResolve(reply, repo, commit, decodeURIComponent(file[3] ?? ""));
      else await answerRepo(reply, repo, commit, api ?? []);
    }
  }

  async function answerRepo(reply: Reply, repo: StoredRepo, commit: string, route: readonly string[]): Promise<void> {
    const { request, response, url } = reply;
    if (route[2] === "tree") {
      const recursive = url.searchParams.get("recursive") === "true";
      sendPage(reply, treeEntries(repo, commit, decodeURIComponent(route[4] ?? ""), recursive), pageSize);
    } else if (route[2] === "paths-info") {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      const { paths }: { paths: string[] } = JSON.parse(body);
      const files = [...(repo.commits.get(commit) ?? [])].filter(([path]) => paths.includes(path));
      const lastCommit = { id: commit, title: "", date: "2025-01-01T00:00:00.000Z" };
      sendJson(
        response,
        files.map(([path, file]) => ({ ...fileEntry(path, file), lastCommit })),
      );
    } else {
      sendJson(response, modelInfo(repo, commit));
    }
  }

  function answerSearch(reply: Reply): void {
    const limit = Math.min(Number(reply.url.searchParams.get("limit") ?? pageSize), pageSize);
    const found = searchRepos(repos.values(), reply.url.searchParams);
    sendPage(
      reply,
      found.map((repo) => listedInfo(repo, reply.url.searchParams)),
      limit,
    );
  }

  async function answerResolve(
    { request, response }: Reply,
    repo: StoredRepo,
    commit: string,
    path: string,
  ): Promise<void> {
    const file = repo.commits.get(commit)?.get(path);
    response.setHeader("X-Repo-Commit", commit);
    if (!file) {
      refuse(response, 404, "EntryNotFound", "Entry not found");
      return;
    }
    response.setHeader("Accept-Ranges", "bytes");
    response.setHeader("ETag", `"${file.oid}"`);
    if (!file.lfs) {
      await send({ request, response, path, bytes: file.bytes });
      return;
    }
    response.setHeader("X-Linked-Etag", `"${file.sha256}"`);
    response.setHeader("X-Linked-Size", String(file.bytes.length));
    const query = new URLSearchParams({ Expires: "4102444800", Signature: signature(file), path });
    response.writeHead(302, { Location: `${storage}/${repo.name}/${file.sha256}?${query.toString()}` });
    response.end("Found. Redirecting");
  }

  async function answerStorage({ request, response, url }: Reply): Promise<void> {
    const file = storedFile(repos.values(), url.pathname.slice(url.pathname.lastIndexOf("/") + 1));
    // Real storage takes one way of authorization only: a token beside the signature is an error there.
    if (request.headers.authorization !== undefined) {
      response.writeHead(400).end("Only one auth mechanism allowed");
    } else if (!file || url.searchParams.get("Signature") !== signature(file)) {
      response.writeHead(403).end("SignatureDoesNotMatch");
    } else {
      // As on the real one, where each node has its own: good for nothing.
      response.setHeader("ETag", `"${createHash("md5").update(`${file.sha256} ${requests.length}`).digest("hex")}-1"`);
      await send({ request, response, path: url.searchParams.get("path") ?? "", bytes: file.bytes });
    }
  }

  function commit(name: string, repoOptions: RepoOptions): string {
    const stored = storeCommit(repos.get(name), name, repoOptions);
    repos.set(name, stored);
    return stored.head;
  }

  function failNext(failure: Failure): void {
    failures.push({ ...failure, left: failure.times ?? 1 });
  }

  async function close(): Promise<void> {
    await Promise.all([hubServer, storageServer].map(closeServer));
  }

  cleanUp(t, close);
  return {
    ...troubles,
    endpoint,
    storage,
    requests,
    addRepo: commit,
    updateRepo: commit,
    removeRepo: (repo) => void repos.delete(repo),
    failNext,
    rateLimit({ seconds, times = 1 }) {
      const headers = { RateLimit: `"api";r=0;t=${seconds}` };
      failNext({ status: 429, times, headers, match: ({ origin }) => origin === "hub" });
    },
    requireToken(token) {
      required = token;
      tokens.add(token);
    },
    close,
  };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return `http://127.0.0.1:${address.port}`;
}

async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function storedFile(repos: Iterable<StoredRepo>, sha256: string): StoredFile | undefined {
  const commits = [...repos].flatMap((repo) => [...repo.commits.values()]);
  return commits.flatMap((files) => [...files.values()]).find((file) => file.sha256 === sha256);
}

function signature(file: StoredFile): string {
  return createHash("sha256").update(`signed ${file.sha256}`).digest("hex");
}
