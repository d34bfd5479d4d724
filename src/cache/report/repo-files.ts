// A repository's folder of the model cache as plain data, for the disk report and for garbage collection. Pure.

/** A file of a snapshot. */
export interface RepoLink {
  /** In the repository, with `/`. */
  readonly path: string;
  readonly isLink: boolean;
  /** Name of the blob that it leads to, by a link of either kind; null for a plain file and a link out of the repository. */
  readonly blob: string | null;
  /** Bytes; null for a link whose target is gone. */
  readonly size: number | null;
  /** The same for two names of one file; null if there is no file. */
  readonly inode: string | null;
  /** ms; of the file that it leads to. */
  readonly modifiedAt: number;
}

export interface RepoSnapshot {
  readonly commit: string;
  readonly files: readonly RepoLink[];
}

export interface RepoBlob {
  /** A digest. */
  readonly name: string;
  readonly size: number;
  readonly inode: string;
  /** Names that the file has, this one included. */
  readonly names: number;
}

/** Unfinished work of a gateway: a file on its way. */
export interface RepoPartial {
  /** Relative to the repository's folder. */
  readonly paths: readonly string[];
  /** On the disk. */
  readonly bytes: number;
  /** The model that it is for; null if it is not known. */
  readonly model: string | null;
  /** ms */
  readonly modifiedAt: number;
  /** This process is writing it. */
  readonly isHeld: boolean;
  /** Another gateway's, or its process is running. */
  readonly isAnothers: boolean;
  /** A snapshot shows the whole file: the rest of its download serves nothing. */
  readonly isShown: boolean;
}

export interface RepoFiles {
  /** `owner/name` */
  readonly repo: string;
  readonly refs: readonly { readonly name: string; readonly commit: string }[];
  readonly snapshots: readonly RepoSnapshot[];
  readonly blobs: readonly RepoBlob[];
  /** A revision or a folder in one is a link: which blobs it shows is not known. */
  readonly hasFolderLink: boolean;
  readonly partials: readonly RepoPartial[];
  /** When another program last touched a lock or an unfinished file of its own, ms; null: there is none. */
  readonly othersAt: number | null;
}

export interface CacheSurvey {
  readonly repos: readonly RepoFiles[];
  readonly unreadable: readonly { readonly repo: string; readonly why: string }[];
}

/** A file in a revision. */
export interface RepoPlace {
  readonly commit: string;
  /** In the repository. */
  readonly path: string;
}

/** Names of blobs that a snapshot shows, without these of its files. */
export function linkedBlobs(
  { snapshots }: Pick<RepoFiles, "snapshots">,
  without: readonly RepoPlace[] = [],
): Set<string> {
  const gone = new Set(without.map(({ commit, path }) => `${commit}/${path}`));
  return new Set(
    snapshots.flatMap(({ commit, files }) =>
      files.flatMap(({ path, blob }) => (gone.has(`${commit}/${path}`) ? [] : (blob ?? []))),
    ),
  );
}

/** Each file once, however many names lead to it. */
export function bytesOf(files: readonly Pick<RepoLink, "inode" | "size">[]): number {
  const sizes = new Map(files.map(({ inode, size }) => [inode, inode === null ? 0 : (size ?? 0)]));
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

/** What becomes free with these blobs; one with a name elsewhere frees nothing. */
export function freedBytes({ blobs }: Pick<RepoFiles, "blobs">, going: ReadonlySet<string>): number {
  return blobs.reduce((sum, { name, size, names }) => sum + (going.has(name) && names === 1 ? size : 0), 0);
}
