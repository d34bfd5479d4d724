// Repositories and files in the hub's own form, as its clients read them.
import { createHash } from "node:crypto";
import type { ServedFile, ServedRevision } from "./served.ts";

export function treeEntry({ path, size, digest }: ServedFile): object {
  if (digest.length === 40) return { type: "file", oid: digest, size, path };
  // What git stores of a file in LFS, so that its id is that of the hub.
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${digest}\nsize ${size}\n`;
  const oid = createHash("sha1").update(`blob ${pointer.length}\0${pointer}`).digest("hex");
  return { type: "file", oid, size, path, lfs: { oid: digest, size, pointerSize: pointer.length } };
}

export function modelInfo({ repo, commit, files }: ServedRevision): object {
  return {
    id: repo,
    modelId: repo,
    author: repo.split("/")[0],
    sha: commit,
    private: false,
    gated: false,
    disabled: false,
    downloads: 0,
    likes: 0,
    tags: ["gguf"],
    siblings: files.map(({ path }) => ({ rfilename: path })),
  };
}

export function etagOf({ digest }: Pick<ServedFile, "digest">): string {
  return `"${digest}"`;
}

export function fileHeaders(file: ServedFile, commit: string): Record<string, string> {
  const etag = etagOf(file);
  const linked = file.digest.length === 64 && { "x-linked-etag": etag, "x-linked-size": String(file.size) };
  return {
    etag,
    ...linked,
    "x-repo-commit": commit,
    "accept-ranges": "bytes",
    "content-type": "application/octet-stream",
  };
}
