// Owns the shapes that the front door and the two ways share: progress, and an engine that can be built into a folder.
// Types only.

import type { EngineBinary } from "./catalog.ts";
import type { RunOptions } from "./run.ts";

export interface InstallProgress {
  readonly phase: "resolve" | "download" | "unpack" | "check";
  /** Bytes while downloading, items otherwise. */
  readonly done: number;
  /** 0: unknown. */
  readonly total: number;
  readonly detail: string;
}

/** What a way found and can build. */
export interface Build {
  readonly version: string;
  /** Tells builds of one version apart; part of the folder's name. */
  readonly detail: string;
  /** Fetches and unpacks; `home` is the folder's final path. */
  fill(home: string): Promise<FilledFolder>;
}

export interface FilledFolder {
  /** Inside the staging, ready to be renamed. */
  readonly folder: string;
  /** Paths relative to the folder. */
  readonly binaries: Readonly<Partial<Record<EngineBinary, string>>>;
}

export interface BuildContext {
  /** An empty folder on the filesystem of the final one. */
  readonly staging: string;
  readonly run: RunOptions;
  onProgress(progress: InstallProgress): void;
}
