// Voices and transcription models on the disk: what is known of them beside their files in the cache, and deletion by name.
// src/cache/report/speech-files.ts decides what is unused; cache-gc.ts deletes it, with the other garbage of the cache.
import { forgetVoice, plainVoices } from "../cache/download/speech-files.ts";
import type { Inventory, SpeechEntry } from "../cache/inventory/inventory.ts";
import { type RemovedFiles, removeFiles } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { officialRepos, type SpeechFacts, speechFilesIn } from "../cache/report/speech-files.ts";
import { surveyRepo } from "../cache/scan/survey.ts";
import { GatewayError } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import { keptLicenses } from "../hub/voice-cards.ts";
import { type SpeechKind, speechKinds } from "../plan/observed.ts";
import { modelFileName } from "../speech/transcription-models.ts";
import { isVoiceId } from "../speech/voices.ts";

export type SpeechStore = ReturnType<typeof createSpeechStore>;

export function createSpeechStore(options: {
  readonly cacheDir: string;
  readonly voicesDir: string;
  readonly inventory: Inventory;
  readonly desired: () => Pick<Desired, "speech">;
  readonly running: () => Readonly<Record<SpeechKind, string | null>>;
  readonly turns: RepoTurns;
}) {
  const { cacheDir, voicesDir, inventory, turns } = options;

  async function find(asked: string): Promise<Named | null> {
    for (const kind of speechKinds) {
      const repo = officialRepos[kind];
      const name = nameOf(kind, asked.startsWith(`${repo}:`) ? asked.slice(repo.length + 1) : asked);
      if (name === null) continue;
      const bytes = kind === "synthesis" ? (await plainVoices(voicesDir)).get(name) : undefined;
      if (bytes !== undefined) return { kind, name, bytes };
      if ((await linksOf(repo, name)).length > 0) return { kind, name, bytes: null };
    }
    return null;
  }

  async function linksOf(repo: string, name: string) {
    const files = await surveyRepo(cacheDir, repo);
    return files ? speechFilesIn(files).flatMap((each) => (each.name === name ? each.links : [])) : [];
  }

  /** After the deletion of their files. */
  async function forget(gone: readonly SpeechEntry[]): Promise<void> {
    for (const { kind, name } of gone) {
      if (kind === "synthesis") await forgetVoice(voicesDir, name);
      await inventory.removeSpeech({ kind, name });
    }
  }

  /** Under the repository's turn, and from a survey made under it. */
  async function removeNamed({ kind, name }: SpeechEntry): Promise<RemovedFiles> {
    const repo = officialRepos[kind];
    const release = turns.tryTake(repo);
    if (!release) throw new GatewayError("busy", `${repo} is being pulled from`, { retryAfterMs: 5_000 });
    try {
      const links = await linksOf(repo, name);
      const removed = await removeFiles({ cacheDir, repo, links, blobs: links.flatMap(({ blob }) => blob ?? []) });
      await forget([{ kind, name }]);
      return removed;
    } finally {
      release();
    }
  }

  return {
    facts: async (): Promise<SpeechFacts> => ({
      running: options.running(),
      ours: inventory.hasSpeech,
      plainVoices: await plainVoices(voicesDir),
      licenses: await keptLicenses(voicesDir),
    }),
    forget,
    /** Whether a name (`NAME`, `OWNER/REPO:NAME`) is that of a voice or a model here. Throws `cache_unwritable`. */
    has: async (asked: string): Promise<boolean> => (await find(asked)) !== null,
    /**
     * Deletes a voice or a model, also of another program; null if there is none of that name.
     * Throws `invalid_request` for one that the document names, `busy` while it is being fetched, `cache_unwritable`.
     */
    remove: async (asked: string): Promise<(RemovedFiles & { readonly name: string }) | null> => {
      const found = await find(asked);
      if (!found) return null;
      const { kind, name, bytes } = found;
      if (options.desired().speech?.[kind] === name || options.running()[kind] === name)
        throw new GatewayError(
          "invalid_request",
          `${name} is what ${kind} runs with: name another one in the document first, or turn ${kind} off`,
        );
      if (bytes !== null) return { name, deletedFiles: await forgetVoice(voicesDir, name), freedBytes: bytes };
      return { name, ...(await removeNamed(found)) };
    },
  };
}

interface Named extends SpeechEntry {
  /** Of a voice that was put into its folder by hand; null for what lies in the cache. */
  readonly bytes: number | null;
}

/** Short as in the document, or whole; null for what is no such name. */
function nameOf(kind: SpeechKind, name: string): string | null {
  if (kind === "transcription") return modelFileName(name);
  return isVoiceId(name) ? name : null;
}
