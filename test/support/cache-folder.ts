// A hub cache folder as other tools leave one, built by hand: whatever a scan may meet.
import { createHash } from "node:crypto";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ggufBytes } from "./scripted/gguf-writer.ts";

/** The head of a model without tensors: enough for whoever reads metadata. `name` makes the content its own. */
export function modelHead(name: string, contextLength = 4096, fileType = 7): Buffer {
  return Buffer.from(
    ggufBytes({
      metadata: [
        ["general.architecture", { type: "string", value: "llama" }],
        ["general.name", { type: "string", value: name }],
        ["general.file_type", { type: "uint32", value: fileType }],
        ["llama.context_length", { type: "uint32", value: contextLength }],
      ],
      tensors: [],
    }),
  );
}

/** The same bytes but for the first 24, which are the head of a GGUF without pairs: enough for a pull. */
export function withGgufHead<T extends Buffer>(bytes: T): T {
  bytes.fill(0, 0, 24);
  bytes.write("GGUF\u0003", "latin1");
  return bytes;
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A commit's name made from a word. */
export function commitOf(word: string): string {
  return createHash("sha1").update(word).digest("hex");
}

export interface CacheRepo {
  readonly root: string;
  /** Puts a file in a snapshot, linked to its blob; answers with its path there. */
  link(commit: string, path: string, bytes: Uint8Array): Promise<string>;
  /** The same as a plain file, as Windows has it. */
  plain(commit: string, path: string, bytes: Uint8Array): Promise<string>;
  main(commit: string): Promise<void>;
}

export function cacheRepo(cacheDir: string, repo: string): CacheRepo {
  const root = join(cacheDir, `models--${repo.replace("/", "--")}`);

  async function write(path: string, bytes: Uint8Array | string): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes);
  }

  return {
    root,
    link: async (commit, path, bytes) => {
      const blob = sha256(bytes);
      const place = join(root, "snapshots", commit, path);
      await write(join(root, "blobs", blob), bytes);
      await mkdir(dirname(place), { recursive: true });
      await symlink(`${"../".repeat(path.split("/").length + 1)}blobs/${blob}`, place);
      return place;
    },
    plain: async (commit, path, bytes) => {
      const place = join(root, "snapshots", commit, path);
      await write(place, bytes);
      return place;
    },
    main: (commit) => write(join(root, "refs", "main"), commit),
  };
}
