// Voices and transcription models as files of the model cache: which there are, their size, which are not in use. Pure.
import type { DiskBody } from "../../../schemas/disk.ts";
import type { Desired } from "../../desired/document/document.ts";
import type { SpeechKind } from "../../plan/observed.ts";
import { isModelFileName, transcriptionRepo } from "../../speech/transcription-models.ts";
import { isVoiceId, voiceRepo } from "../../speech/voices.ts";
import { type GarbageItem, inCache, type RepoGarbage } from "./garbage.ts";
import {
  bytesOf,
  type CacheSurvey,
  freedBytes,
  linkedBlobs,
  type RepoFiles,
  type RepoLink,
  type RepoPlace,
} from "./repo-files.ts";

type Link = RepoLink & RepoPlace;

/** A voice or a model with everything that leads to it, in all revisions. */
export interface SpeechFiles {
  readonly kind: SpeechKind;
  /** A voice's id, or the model's file name. */
  readonly name: string;
  readonly repo: string;
  readonly links: readonly Link[];
}

export type DiskSpeech = DiskBody["speech"][number];

export interface SpeechFacts {
  readonly desired: Pick<Desired, "speech">;
  /** What each engine runs with. */
  readonly running: Readonly<Record<SpeechKind, string | null>>;
  /** Whether this gateway fetched it. */
  readonly ours: (files: Pick<SpeechFiles, "kind" | "name">) => boolean;
  /** Voices that lie in the folder of voices as files, with their bytes. */
  readonly plainVoices: ReadonlyMap<string, number>;
  /** By voice. */
  readonly copies: ReadonlyMap<string, number>;
  /** By voice. */
  readonly licenses: ReadonlyMap<string, string>;
}

/** In the order of their names. */
export function speechFilesOf({ repos }: Pick<CacheSurvey, "repos">): SpeechFiles[] {
  return repos.flatMap(filesIn).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function filesIn({ repo, snapshots }: RepoFiles): SpeechFiles[] {
  const found = new Map<string, SpeechFiles & { links: Link[] }>();
  const kind = repo === voiceRepo ? "synthesis" : "transcription";
  // The card with a voice's license is beside it, and has no name in it.
  const keyOf = (path: string): string => (repo === voiceRepo ? folderOf(path) : path);
  for (const { commit, files } of snapshots) {
    const names = new Map(
      files.flatMap(({ path }) => {
        const name = nameIn(repo, path);
        return name === null ? [] : [[keyOf(path), name] as const];
      }),
    );
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

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

export function diskSpeech(found: readonly SpeechFiles[], facts: SpeechFacts): DiskSpeech[] {
  const cached = found.map(
    (files): DiskSpeech => ({
      ...factsAbout(files.kind, files.name, facts),
      repo: files.repo,
      present: files.links.some(({ size }) => size !== null),
      ours: isOurs(files, facts),
      bytes: bytesOf(files.links),
    }),
  );
  const plain = [...facts.plainVoices].map(
    ([voice, bytes]): DiskSpeech => ({
      ...factsAbout("synthesis", voice, facts),
      repo: null,
      present: true,
      ours: false,
      bytes,
    }),
  );
  const all = [...cached, ...plain];
  const absent = (["transcription", "synthesis"] as const).flatMap((kind): DiskSpeech[] => {
    const name = facts.desired.speech?.[kind] ?? null;
    if (name === null || all.some((each) => each.kind === kind && each.name === name)) return [];
    return [{ ...factsAbout(kind, name, facts), repo: officialRepo(kind), present: false, ours: false, bytes: 0 }];
  });
  return [...all, ...absent];
}

function factsAbout(kind: SpeechKind, name: string, { desired, running, copies, licenses }: SpeechFacts) {
  return {
    kind,
    name,
    desired: desired.speech?.[kind] === name,
    running: running[kind] === name,
    copyBytes: kind === "synthesis" ? (copies.get(name) ?? 0) : 0,
    license: kind === "synthesis" ? (licenses.get(name) ?? null) : null,
  };
}

function officialRepo(kind: SpeechKind): string {
  return kind === "synthesis" ? voiceRepo : transcriptionRepo;
}

/** Another program's files are theirs, also where they are of the same repository. */
function isOurs(files: SpeechFiles, { ours }: SpeechFacts): boolean {
  return files.repo === officialRepo(files.kind) && ours(files);
}

/** What this gateway fetched and nothing uses any more: the document names another, and no engine runs with it. */
export function unusedSpeech(found: readonly SpeechFiles[], facts: SpeechFacts): SpeechFiles[] {
  return found.filter((files) => {
    const { desired, running } = factsAbout(files.kind, files.name, facts);
    return isOurs(files, facts) && !desired && !running;
  });
}

/** Their links, and the blobs that no other link shows. */
export function speechGarbage(going: readonly SpeechFiles[], files: RepoFiles): RepoGarbage {
  const { repo } = files;
  const links = going.flatMap((each) => each.links);
  const staying = linkedBlobs(files, links);
  const loose = ({ links: own }: Pick<SpeechFiles, "links">): Set<string> =>
    new Set(own.flatMap(({ blob }) => (blob === null || staying.has(blob) ? [] : blob)));
  return {
    repo,
    links,
    blobs: [...loose({ links })],
    partials: [],
    items: going.map((each): GarbageItem => {
      const own = loose(each);
      const main = each.links.find(({ path }) => /\.(?:onnx|bin)$/.test(path)) ?? each.links[0];
      return {
        repo,
        kind: "speech",
        path: inCache(repo, `snapshots/${main?.commit ?? ""}/${main?.path ?? ""}`),
        files: each.links.length + own.size,
        bytes: freedBytes(files, own),
        reason: "SpeechUnused",
        message: `${each.kind === "synthesis" ? "the voice" : "the transcription model"} ${each.name}, which the document does not name`,
      };
    }),
  };
}
