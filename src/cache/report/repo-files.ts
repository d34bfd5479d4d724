// What lies in a repository's folder of the model cache, as plain data: for the disk report and for what may go. Pure types,
// and small readers of them.

/** A file of a snapshot. */
export interface RepoLink {
  /** In the repository, with `/`. */
  readonly path: string;
  /** Name of the blob that it leads to, by a link of either kind; null for a plain file and a link out of the repository. */
  readonly blob: string | null;
  readonly isLink: boolean;
  /** Bytes; null for a link whose target is gone. */
  readonly size: number | null;
  /** ms; of the file that it leads to. */
  readonly modifiedAt: number;
  /** The same for two names of one file; null where there is no file. */
  readonly inode: string | null;
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

/** Unfinished work of a gateway: a file on its way, or one that is whole and was never linked. */
export interface RepoPartial {
  /** Relative to the repository's folder. */
  readonly paths: readonly string[];
  /** Bytes on the disk. */
  readonly bytes: number;
  /** Bytes of the whole file; null where nobody noted them. */
  readonly total: number | null;
  /** The model that it is for; null where nobody noted it. */
  readonly model: string | null;
  /** ms */
  readonly modifiedAt: number;
  /** This process is at it. */
  readonly isHeld: boolean;
  /** The process that wrote it is another one, and runs. */
  readonly isAnothers: boolean;
  /** A snapshot shows the whole file: what is left of its download serves nobody. */
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

/** Names of blobs that a snapshot shows. */
export function linkedBlobs({ snapshots }: Pick<RepoFiles, "snapshots">): Set<string> {
  return new Set(snapshots.flatMap(({ files }) => files.flatMap(({ blob }) => blob ?? [])));
}
