// The hub's API as this gateway uses it: revisions, file lists, search, and the bytes of a file.
// Every response is data from outside: its shape is checked here, its names in layout.ts before they become paths.
import type { Readable } from "node:stream";
import type { HubRepos } from "../../schemas/admin.ts";
import type { HubFile } from "../cache/layout/select.ts";
import { GatewayError } from "../core/errors.ts";
import { isCommit, isRepo } from "../core/ids.ts";
import { type Frozen, isJsonObject, parseJson } from "../core/json.ts";
import { createHubHttp, type HubGet, type HubHttpOptions, type HubPlace, proxiesIn } from "./http.ts";

export type HubRepo = Frozen<HubRepos>[number];

export interface OpenedFile {
  readonly body: Readable;
  /** Bytes of the whole file, where the hub has it. */
  readonly total: number | undefined;
  /**
   * Where `body` begins: 0 if the server has no ranges, -1 if it has no such range (then `total` is the file's size by the
   * server).
   */
  readonly from: number;
  /** Whether it is a range at all, and not the whole file. */
  readonly ranged: boolean;
  /** For the next range of the same file. */
  readonly place: HubPlace;
  /** Lower-case sha256 announced by the hub; never the ETag of its storage, which differs from node to node. */
  readonly sha256?: string;
}

export type HubClient = ReturnType<typeof createHubClient>;

export interface OpenOptions {
  readonly from: number;
  /** Up to but without; the file's end where absent. */
  readonly to?: number;
  /** The address of an earlier response: saves a request to the hub. */
  readonly place?: HubPlace | undefined;
  readonly signal: AbortSignal;
}

export interface SearchOptions {
  readonly limit: number;
  /** With the license of each. */
  readonly license?: boolean;
  readonly signal?: AbortSignal;
}

/** A page of a thousand entries is below two megabytes. Parsing one blocks the event loop. */
const pageLimit = 8 * 1024 * 1024;
/** The public hub's largest repositories have some tens of thousands of files, a thousand on a page. */
const mostPages = 200;
const mostEntries = 100_000;

/** All methods throw `hub_unreachable`, `hub_denied`, `hub_not_found`, `hub_rate_limited`, and `cancelled` when aborted. */
export function createHubClient(options: HubHttpOptions) {
  const http = createHubHttp(options);
  const base = options.endpoint.replace(/\/+$/, "");

  async function json(url: string, get: HubGet): Promise<{ value: unknown; next: HubPlace | undefined }> {
    const { what } = get;
    const headers = { accept: "application/json" };
    const { answer, text } = await http.text(url, { ...get, headers }, pageLimit, () => malformed(what));
    const link = /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(answer.header("link") ?? "")?.[1];
    const next = link === undefined || !URL.canParse(link, answer.url.href) ? undefined : new URL(link, answer.url);
    // An address named by another origin never gets the token, even if it leads back to the hub.
    const trusted = answer.place.trusted && next?.origin === answer.url.origin;
    return { value: parseJson(text), next: next && { url: next.href, trusted } };
  }

  async function* pages(url: string, what: string, signal?: AbortSignal): AsyncGenerator<readonly unknown[]> {
    let entries = 0;
    let place: HubPlace | undefined;
    for (let page = 0; page < mostPages && entries < mostEntries; page++) {
      const { value, next } = await json(url, { what, signal, place });
      if (!Array.isArray(value)) throw malformed(what);
      yield value;
      if (!next) return;
      entries += value.length;
      place = next;
    }
    throw new GatewayError("hub_unreachable", `the hub's response for ${what} exceeds the limit`);
  }

  return {
    /** Repositories of GGUF models, most downloaded first. */
    searchModels: async (
      query: string,
      { limit, license = false, signal }: SearchOptions,
    ): Promise<readonly HubRepo[]> => {
      const search = new URLSearchParams({
        ...(query === "" ? {} : { search: query }),
        filter: "gguf",
        sort: "downloads",
        direction: "-1",
        limit: String(limit),
        // A license that the hub has no id for is `other` in the tags; its name is in the card.
        ...(license ? { cardData: "true" } : {}),
      });
      const found: HubRepo[] = [];
      for await (const page of pages(`${base}/api/models?${search.toString()}`, "the search", signal)) {
        for (const entry of page) {
          const repo = repoEntry(entry);
          if (repo) found.push(license ? { ...repo, license: licenseOf(entry) } : repo);
        }
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    },
    /** The commit that a branch or tag points to; a commit is its own answer. */
    resolveRevision: async (repo: string, revision: string, signal?: AbortSignal): Promise<string> => {
      if (isCommit(revision)) return revision;
      const what = `${repo} at ${revision}`;
      const url = `${base}/api/models/${repoPart(repo)}/revision/${encodeURIComponent(revision)}`;
      const { value } = await json(url, { what, signal });
      const sha = field(value, "sha");
      if (typeof sha !== "string" || !isCommit(sha)) throw malformed(what);
      return sha;
    },
    /** All files at a commit (or branch, or tag), in subfolders too. */
    listTree: async (repo: string, commit: string, signal?: AbortSignal): Promise<readonly HubFile[]> => {
      const what = `the file list of ${repo}`;
      const files: HubFile[] = [];
      const url = `${base}/api/models/${repoPart(repo)}/tree/${encodeURIComponent(commit)}?recursive=true`;
      for await (const page of pages(url, what, signal)) {
        for (const entry of page) if (field(entry, "type") === "file") files.push(fileEntry(entry, what));
      }
      return files;
    },
    /** Opens the bytes of a file, beginning at `from`. The caller reads or destroys the body. */
    openFile: async (repo: string, commit: string, path: string, options: OpenOptions): Promise<OpenedFile> => {
      const { from, to, place, signal } = options;
      const encoded = path.split("/").map(encodeURIComponent).join("/");
      const ranged = from > 0 || to !== undefined;
      const answer = await http.get(`${base}/${repoPart(repo)}/resolve/${encodeURIComponent(commit)}/${encoded}`, {
        what: `${path} of ${repo}`,
        signal,
        headers: ranged ? { range: `bytes=${from}-${to === undefined ? "" : to - 1}` } : {},
        accept: [416],
        place,
      });
      const range = contentRange(answer.status, answer.header("content-range"));
      const sha256 = normaliseEtag(answer.hubHeader("x-linked-etag"));
      const length = answer.status === 200 ? wholeNumber(answer.header("content-length")) : undefined;
      const total = range.total ?? wholeNumber(answer.hubHeader("x-linked-size")) ?? length;
      return {
        body: answer.body,
        total,
        from: range.from,
        ranged: answer.status === 206,
        place: answer.place,
        ...(sha256 ? { sha256 } : {}),
      };
    },
    /** With these another thread makes a client of its own. */
    options: { ...options, environment: proxiesIn(options.environment) },
    reachability: http.reachability,
    noteReachability: http.noteReachability,
    close: http.close,
  };
}

function repoPart(repo: string): string {
  if (!isRepo(repo))
    throw new GatewayError("invalid_request", `${JSON.stringify(repo)} is not a repository: OWNER/NAME expected`);
  return repo;
}

/** 206 begins at Content-Range, which may differ from the request; 200 is the whole file; 416 has its length only. */
function contentRange(status: number, header: string | undefined): { from: number; total: number | undefined } {
  if (status !== 206 && status !== 416) return { from: 0, total: undefined };
  const match = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(header ?? "");
  return { from: status === 206 ? (wholeNumber(match?.[1]) ?? -1) : -1, total: wholeNumber(match?.[2]) };
}

/** Quotes, a weak mark and upper case are decoration. */
function normaliseEtag(etag: string | undefined): string | undefined {
  const bare = etag?.replace(/^W\//, "").replaceAll('"', "").toLowerCase();
  return bare !== undefined && /^[0-9a-f]{64}$/.test(bare) ? bare : undefined;
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

function repoEntry(entry: unknown): HubRepo | undefined {
  const id = field(entry, "id") ?? field(entry, "modelId");
  const downloads = field(entry, "downloads");
  const likes = field(entry, "likes");
  // The hub has some of its oldest repositories without an owner: nothing here could pull them.
  if (typeof id !== "string" || !isRepo(id)) return undefined;
  return { id, downloads: typeof downloads === "number" ? downloads : 0, likes: typeof likes === "number" ? likes : 0 };
}

const licenseTag = "license:";
const longestLicense = 100;

function licenseOf(entry: unknown): string | null {
  const tags = field(entry, "tags");
  const name = field(field(entry, "cardData"), "license_name");
  const licenses = (Array.isArray(tags) ? tags : [])
    .filter((tag) => typeof tag === "string" && tag.startsWith(licenseTag))
    .map((tag: string) => tag.slice(licenseTag.length))
    .map((license) => (license === "other" && typeof name === "string" ? name : license));
  return licenses.length === 0 ? null : licenses.join(", ").slice(0, longestLicense);
}

function fileEntry(entry: unknown, what: string): HubFile {
  const path = field(entry, "path");
  const oid = field(entry, "oid");
  const lfs = field(entry, "lfs");
  const size = (lfs === undefined ? undefined : field(lfs, "size")) ?? field(entry, "size");
  if (typeof path !== "string" || typeof oid !== "string" || typeof size !== "number") throw malformed(what);
  if (!Number.isSafeInteger(size) || size < 0) throw malformed(what);
  if (lfs === undefined || lfs === null) return { path, size, oid };
  const sha256 = field(lfs, "oid");
  // Without the digest the file could not be verified: its own oid is that of the pointer.
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) throw malformed(what);
  return { path, size, oid, sha256 };
}

function field(value: unknown, name: string): unknown {
  return isJsonObject(value) ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

function malformed(what: string): GatewayError {
  return new GatewayError("hub_unreachable", `the response for ${what} is not from a hub: check HF_ENDPOINT`);
}
