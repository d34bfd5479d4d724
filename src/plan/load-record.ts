// How loads of models have ended, as plain data.

/** Of one model, as the gateway writes them into the preset; those of its owner are never touched. */
export type Settings = ReadonlyMap<string, string>;

/** What a load is made of: with the same it ends the same way. */
export interface LoadInputs {
  readonly settings: Settings;
  /** Changes with the content of the model's files. */
  readonly files: string;
  /** Changes with the engine's build. */
  readonly engine: string;
}

export interface LoadRecord {
  /** With what its last process gave a token. */
  readonly verified: LoadInputs;
  /** With what none did, since then; null: there is no such thing, or it is to be tried again. */
  readonly failed: (LoadInputs & { readonly why: string }) | null;
}

/** By the router's ids. */
export type LoadRecords = ReadonlyMap<string, LoadRecord>;

/** A context that was chosen for a model. */
export interface ChosenContext {
  /** Tokens; null: none could be. */
  readonly tokens: number | null;
  /** Why none could be chosen. */
  readonly why: string;
  /** What the model was to be loaded with, but for the context. */
  readonly settings: Settings;
}

/** What is remembered of loads, by the router's ids. */
export interface LoadFacts {
  readonly records: LoadRecords;
  readonly contexts: ReadonlyMap<string, ChosenContext>;
}

export const noLoads: LoadFacts = { records: new Map(), contexts: new Map() };

export function isSameLoad(a: LoadInputs, b: LoadInputs): boolean {
  return a.files === b.files && a.engine === b.engine && differences(a.settings, b.settings).length === 0;
}

export function isChosenFor(context: ChosenContext | undefined, settings: Settings): context is ChosenContext {
  return context !== undefined && differences(context.settings, settings).length === 0;
}

/** Keys of settings that are not alike. */
export function differences(a: Settings, b: Settings): string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key));
}
