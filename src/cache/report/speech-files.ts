// Voices and transcription models as files of the model cache: which there are, their size, which are not in use. Pure.
import type { DiskBody } from "../../../schemas/disk.ts";
import type { Desired } from "../../desired/document/document.ts";
import { type SpeechKind, speechKinds } from "../../plan/observed.ts";
import { isModelFileName, transcriptionRepo } from "../../speech/transcription-models.ts";
import { isVoiceId, voiceRepo } from "../../speech/voices.ts";
import { folderOf } from "../layout/model-files.ts";
import { bytesOf, type CacheSurvey, type RepoFiles, type RepoLink, type RepoPlace } from "./repo-files.ts";

/** A voice or a model with everything that leads to it, in all revisions. */
export interface SpeechFiles {
  readonly kind: SpeechKind;
  /** A voice's id, or the model's file name. */
  readonly name: string;
  readonly repo: string;
  readonly links: readonly (RepoLink & RepoPlace)[];
}

type DiskSpeech = DiskBody["speech"][number];

export interface SpeechFacts {
  /** What each engine runs with. */
  readonly running: Readonly<Record<SpeechKind, string | null>>;
  /** Whether this gateway fetched it. */
  readonly ours: (files: Pick<SpeechFiles, "kind" | "name">) => boolean;
  /** By voice. */
  readonly licenses: ReadonlyMap<string, string>;
}

interface SpeechInput {
  readonly survey: CacheSurvey;
  readonly desired: Pick<Desired, "speech">;
  readonly speech: SpeechFacts;
}

const officialRepos = { transcription: transcriptionRepo, synthesis: voiceRepo } as const;

export function speechFilesIn({ repo, snapshots }: RepoFiles): SpeechFiles[] {
  const found = new Map<string, SpeechFiles & { links: (RepoLink & RepoPlace)[] }>();
  const kind = repo === voiceRepo ? "synthesis" : "transcription";
  // The card with a voice's license is beside it, and has no name in it.
  const keyOf = (path: string): string => (repo === voiceRepo ? folderOf(path) : path);
  for (const { commit, files } of snapshots) {
    const names = new Map<string, string>();
    for (const { path } of files) {
      const name = nameIn(repo, path);
      if (name !== null) names.set(keyOf(path), name);
    }
    for (const file of files) {
      const name = names.get(keyOf(file.path));
      if (name === undefined) continue;
      const own = found.get(name) ?? { kind, name, repo, links: [] };
      own.links.push({ ...file, commit });
      found.set(name, own);
    }
  }
  return [...found.values()];
}

/** Of a voice or model; null for any other file. */
function nameIn(repo: string, path: string): string | null {
  if (repo !== voiceRepo) return isModelFileName(path) ? path : null;
  const id = /([^/]+)\.onnx(?:\.json)?$/.exec(path)?.[1]?.normalize("NFC") ?? "";
  return isVoiceId(id) ? id : null;
}

/** In the order of their names, then what the document names and is absent. */
export function diskSpeech(input: SpeechInput): DiskSpeech[] {
  const { survey, desired } = input;
  const found = survey.repos.flatMap(speechFilesIn).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const cached = found.map((files) => ({
    ...factsAbout(files.kind, files.name, input),
    repo: files.repo,
    present: files.links.some(({ size }) => size !== null),
    ours: isOurs(files, input),
    bytes: bytesOf(files.links),
  }));
  const absent = speechKinds.flatMap((kind) => {
    const name = desired.speech?.[kind] ?? null;
    if (name === null || cached.some((each) => each.kind === kind && each.name === name)) return [];
    return { ...factsAbout(kind, name, input), repo: officialRepos[kind], present: false, ours: false, bytes: 0 };
  });
  return [...cached, ...absent];
}

function factsAbout(kind: SpeechKind, name: string, { desired, speech }: Omit<SpeechInput, "survey">) {
  return {
    kind,
    name,
    desired: desired.speech?.[kind] === name,
    running: speech.running[kind] === name,
    license: kind === "synthesis" ? (speech.licenses.get(name) ?? null) : null,
  };
}

/** Another program's files are theirs, also where they are of the same repository. */
function isOurs(files: SpeechFiles, { speech }: Pick<SpeechInput, "speech">): boolean {
  return files.repo === officialRepos[files.kind] && speech.ours(files);
}

/** What this gateway fetched and nothing uses any more: the document names another, and no engine runs with it. */
export function unusedSpeech(files: RepoFiles, input: Omit<SpeechInput, "survey">): SpeechFiles[] {
  return speechFilesIn(files).filter((each) => {
    const { desired, running } = factsAbout(each.kind, each.name, input);
    return isOurs(each, input) && !desired && !running;
  });
}
