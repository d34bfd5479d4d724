// The repositories of the loopback hub and its JSON answers about them. No sockets: loopback-hub.ts serves these.
import { createHash } from "node:crypto";

export interface RepoOptions {
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** 40 hex characters; made from the content where absent. */
  readonly commit?: string;
  /** Listed for everybody, files only with an accepted token. */
  readonly gated?: boolean;
  /** Nothing without an accepted token. */
  readonly private?: boolean;
  /** False: nothing is in LFS. Default: weights are. */
  readonly lfs?: boolean;
  readonly downloads?: number;
  readonly likes?: number;
  /** As its card has it; `license_name` where that is none of the hub's list. */
  readonly card?: { readonly license: string; readonly license_name?: string };
}

export interface StoredFile {
  readonly bytes: Buffer;
  readonly sha256: string;
  /** git's sha1: of the content, or of the pointer where the file is in LFS. */
  readonly oid: string;
  readonly lfs: boolean;
}

export interface StoredRepo {
  readonly name: string;
  readonly options: RepoOptions;
  readonly commits: Map<string, ReadonlyMap<string, StoredFile>>;
  head: string;
}

export function storeCommit(repo: StoredRepo | undefined, name: string, options: RepoOptions): StoredRepo {
  const files = new Map<string, StoredFile>();
  for (const [path, bytes] of Object.entries(options.files))
    files.set(
      path,
      storeFile(path, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), options.lfs !== false),
    );
  const content = [...files]
    .map(([path, file]) => `${path} ${file.sha256}`)
    .sort()
    .join("\n");
  const commit = options.commit ?? sha1(`${name}\n${repo?.head ?? "first"}\n${content}`);
  const commits = repo?.commits ?? new Map<string, ReadonlyMap<string, StoredFile>>();
  commits.set(commit, files);
  return { name, options: { ...repo?.options, ...options }, commits, head: commit };
}

/** As a repository of models has it in .gitattributes: weights in LFS, texts not. */
function storeFile(path: string, bytes: Buffer, hasLfs: boolean): StoredFile {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const lfs = hasLfs && /\.(gguf|bin|onnx)$/i.test(path);
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${bytes.length}\n`;
  const content = lfs ? Buffer.from(pointer) : bytes;
  return { bytes, sha256, lfs, oid: sha1(Buffer.concat([Buffer.from(`blob ${content.length}\0`), content])) };
}

function sha1(data: string | Buffer): string {
  return createHash("sha1").update(data).digest("hex");
}

/** The commit that a branch or commit means. */
export function commitOf(repo: StoredRepo, revision: string): string | undefined {
  if (revision === "main" || revision === "refs/heads/main") return repo.head;
  return repo.commits.has(revision) ? revision : undefined;
}

/** Entries of `tree`: files, and folders as the hub lists them. */
export function treeEntries(repo: StoredRepo, commit: string, folder: string, recursive: boolean): readonly object[] {
  const prefix = folder === "" ? "" : `${folder}/`;
  const entries: object[] = [];
  const folders = new Set<string>();
  for (const [path, file] of [...(repo.commits.get(commit) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!path.startsWith(prefix)) continue;
    const parts = path.slice(prefix.length).split("/");
    for (let depth = 1; depth < (recursive ? parts.length : Math.min(2, parts.length)); depth++) {
      const name = prefix + parts.slice(0, depth).join("/");
      if (!folders.has(name)) entries.push({ type: "directory", oid: sha1(name), size: 0, path: name });
      folders.add(name);
    }
    if (recursive || parts.length === 1) entries.push(fileEntry(path, file));
  }
  return entries;
}

export function fileEntry(path: string, file: StoredFile): object {
  const lfs = file.lfs ? { lfs: { oid: file.sha256, size: file.bytes.length, pointerSize: 134 } } : {};
  return { type: "file", oid: file.oid, size: file.bytes.length, path, ...lfs };
}

export function modelInfo(repo: StoredRepo, commit: string) {
  const files = [...(repo.commits.get(commit) ?? new Map<string, StoredFile>()).keys()];
  const { card } = repo.options;
  return {
    _id: sha1(repo.name).slice(0, 24),
    id: repo.name,
    modelId: repo.name,
    author: repo.name.split("/")[0],
    sha: commit,
    private: repo.options.private ?? false,
    gated: repo.options.gated ? "manual" : false,
    disabled: false,
    downloads: repo.options.downloads ?? 0,
    likes: repo.options.likes ?? 0,
    lastModified: "2025-01-01T00:00:00.000Z",
    createdAt: "2025-01-01T00:00:00.000Z",
    tags: [...(isGguf(repo) ? ["gguf"] : []), ...(card ? [`license:${card.license}`] : []), "region:us"],
    ...(card && { cardData: card }),
    siblings: files.map((rfilename) => ({ rfilename })),
  };
}

/** An entry of a listing has less, unless the query asks for more, or for some fields by name. */
export function listedInfo(repo: StoredRepo, query: URLSearchParams): object {
  const all = Object.entries(modelInfo(repo, repo.head));
  const fields = query.getAll("expand[]").concat(query.getAll("expand"));
  const usual = ["likes", "private", "downloads", "tags", "createdAt", "modelId"];
  const more = query.get("cardData") === "true" ? ["cardData"] : [];
  const asked = new Set(["_id", "id", ...(fields.length > 0 ? fields : [...usual, ...more])]);
  return Object.fromEntries(query.get("full") === "true" ? all : all.filter(([name]) => asked.has(name)));
}

export function searchRepos(repos: Iterable<StoredRepo>, query: URLSearchParams): StoredRepo[] {
  const text = (query.get("search") ?? "").toLowerCase();
  const author = query.get("author");
  const key = query.get("sort") === "likes" ? "likes" : "downloads";
  return [...repos]
    .filter((repo) => repo.name.toLowerCase().includes(text) && !repo.options.private)
    .filter((repo) => author === null || repo.name.startsWith(`${author}/`))
    .filter((repo) => query.getAll("filter").every((tag) => tag === "gguf" && isGguf(repo)))
    .sort((a, b) => (b.options[key] ?? 0) - (a.options[key] ?? 0) || (a.name < b.name ? -1 : 1));
}

export function refsOf(repo: StoredRepo): object {
  return { branches: [{ name: "main", ref: "refs/heads/main", targetCommit: repo.head }], converts: [], tags: [] };
}

function isGguf(repo: StoredRepo): boolean {
  return [...(repo.commits.get(repo.head)?.keys() ?? [])].some((path) => /\.gguf$/i.test(path));
}
