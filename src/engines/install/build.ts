// What a way of installing an engine is given, and what it gives. Types alone.
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

export interface BuildContext {
  /** An empty folder on the file system of the final one. */
  readonly staging: string;
  readonly run: RunOptions;
  onProgress(progress: InstallProgress): void;
}

/** Paths relative to the engine's folder. */
export type Binaries = Readonly<Partial<Record<EngineBinary, string>>>;

/** What a way found and can build. */
export interface Build {
  readonly version: string;
  /** Distinguishes builds of one version; part of the folder's name. */
  readonly detail: string;
  /** Fetches and unpacks into a folder inside the staging, which will be renamed to `home`. */
  fill(home: string): Promise<{ readonly folder: string; readonly binaries: Binaries }>;
}
