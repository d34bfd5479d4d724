// A watched gateway.yaml with a real store behind it.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { SourceStatus } from "../../src/desired/document/parse.ts";
import { type FileSource, watchFileSource } from "../../src/desired/file-source.ts";
import { type DesiredStore, openDesiredStore } from "../../src/desired/store.ts";
import { cleanUp } from "./clean-up.ts";
import { scratchFolder, until } from "./scratch.ts";

export interface Sourcing {
  readonly root: string;
  readonly path: string;
  readonly store: DesiredStore;
  readonly source: FileSource;
  /** Each status told, as `Reason: message`. */
  readonly told: string[];
  /** Every document that there was, as its models' names. */
  readonly documents: string[];
  /** Reports of the preset file. */
  presets(): number;
  /** Resolves when the document has these models, by name, in this order. */
  becomes(...names: readonly string[]): Promise<void>;
  /** Resolves with the status once its reason is this. */
  reports(reason: string): Promise<SourceStatus>;
  names(): string[];
}

export interface SourcingOptions {
  readonly root?: string;
  readonly path?: string;
  /** First content of the file; null: none. */
  readonly text?: string | null;
  /** Default: so long that only events count. */
  readonly pollMs?: number;
  /** What calls change is written into the file. */
  readonly writesBack?: boolean;
  readonly now?: () => number;
}

/** A document that names `acme/NAME:Q8_0` for each. */
export function naming(...names: readonly string[]): string {
  return `version: 1\nmodels:\n${names.map((name) => `  - acme/${name}:Q8_0\n`).join("")}`;
}

export async function startSourcing(t: TestContext, options: SourcingOptions = {}): Promise<Sourcing> {
  const root = options.root ?? (await scratchFolder(t));
  const path = options.path ?? join(root, "gateway.yaml");
  const stateDir = join(root, "state");
  await mkdir(stateDir, { recursive: true });
  if (options.text !== null && options.text !== undefined) await writeFile(path, options.text);
  const told: string[] = [];
  const documents: string[] = [];
  let presets = 0;
  const store = await openDesiredStore({ stateDir, now: Date.now, warn: (message) => told.push(message) });
  const names = (): string[] => store.current().document.models.map(({ id }) => id.replace(/^acme\/|:Q8_0$/g, ""));
  store.onChange(() => void documents.push(names().join(" ")));
  const source = watchFileSource({
    path,
    store,
    presetPath: join(stateDir, "router.preset.ini"),
    onPreset: () => void presets++,
    onStatus: ({ reason, message }) => void told.push(`${reason}: ${message}`),
    warn: (message, fields) => void told.push(`${message} ${JSON.stringify(fields)}`),
    pollMs: options.pollMs ?? 600_000,
    writesBack: options.writesBack ?? false,
    now: options.now ?? (() => performance.now()),
  });
  cleanUp(t, () => source.close());
  await source.check();
  return {
    root,
    path,
    store,
    source,
    told,
    documents,
    names,
    presets: () => presets,
    becomes: async (...wanted) =>
      void (await until(
        `the document has ${wanted.join(" ")}, not ${names().join(" ")}: ${told.join("; ")}`,
        () => names().join(" ") === wanted.join(" "),
      )),
    reports: (reason) =>
      until(`${reason} is reported: ${told.join("; ")}`, () => source.status().reason === reason && source.status()),
  };
}
