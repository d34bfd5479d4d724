// Names of the ggml models that whisper-server runs: which files are some, and searching them.
// Pure. All official ones lie flat in one repository, each as one file.

/** The official repository. */
export const transcriptionRepo = "ggerganov/whisper.cpp";

export interface ModelFile {
  /** The file's name. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

/** `ggml-NAME.bin`: valid in the document and listed from the cache, also models of one's own. */
export function isModelFileName(name: string): boolean {
  // The detectors of speech have the same form of name and end the server when given as a model.
  return /^ggml-[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\.bin$/.test(name) && !name.startsWith("ggml-silero");
}

/** By name, ignoring case; the repository also holds archives for other runtimes (`-encoder.mlmodelc.zip`). */
export function searchModels(files: readonly ModelFile[], query: string): ModelFile[] {
  const wanted = query.trim().toLowerCase();
  return files
    .filter(({ path }) => isModelFileName(path) && path.toLowerCase().includes(wanted))
    .map(({ path, size }) => ({ path, size }))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The file of a model that is named in short (`base.en`, `ggml-base.en`); null for what can be none. */
export function modelFileName(name: string): string | null {
  const stem = name.trim().replace(/\.bin$/, "");
  const file = `${stem.startsWith("ggml-") ? stem : `ggml-${stem}`}.bin`;
  return isModelFileName(file) ? file : null;
}

/** English-only models end in `.en`; the others detect the language unless one is given. */
export function isEnglishOnly(fileName: string): boolean {
  return /\.en(?:[.-]|$)/.test(fileName);
}
