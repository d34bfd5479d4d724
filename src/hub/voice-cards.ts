// The model cards of voices: who trained one on what, and under which licence. Those of voices on the disk lie beside them.
import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { readAtMost } from "../core/read-at-most.ts";
import { licenseOf } from "../speech/model-card.ts";
import { isVoiceId, requireVoice, voiceRepo } from "../speech/voices.ts";
import type { HubClient } from "./client.ts";
import type { SpeechLists } from "./speech-files.ts";

export interface VoiceCard {
  readonly voice: string;
  /** One line; null where the card names none. */
  readonly license: string | null;
  /** The card, Markdown; null for a voice that has none. */
  readonly card: string | null;
}

/** The official ones have some hundreds of characters. */
const cardLimit = 64 * 1024;
const ending = ".MODEL_CARD";

/**
 * Of a voice on the disk, else of an official one from the hub, which is asked each time. Throws `voice_not_found`, and `hub_*`
 * where the hub is needed and cannot be asked.
 */
export function createVoiceCards(options: {
  readonly client: Pick<HubClient, "openFile">;
  readonly lists: Pick<SpeechLists, "voices">;
  readonly voicesDir: string;
  readonly cachedVoices: () => Promise<readonly string[]>;
}): (voice: string, signal: AbortSignal) => Promise<VoiceCard> {
  const { client, lists, voicesDir } = options;

  async function fromHub(name: string, signal: AbortSignal): Promise<VoiceCard> {
    const { key, files } = requireVoice(await lists.voices(signal), name);
    const path = files.map((file) => file.path).find((each) => each.endsWith("/MODEL_CARD"));
    if (path === undefined) return cardOf(key, null);
    const { body } = await client.openFile(voiceRepo, "main", path, { from: 0, signal });
    const tooLong = (): GatewayError => new GatewayError("hub_unreachable", `The hub's card of ${key} has no end.`);
    return cardOf(key, (await readAtMost(body, cardLimit, tooLong)).toString("utf8"));
  }

  return async (voice, signal) => {
    const isHere = isVoiceId(voice) && (await options.cachedVoices()).includes(voice);
    const kept = isHere ? await keptCard(voicesDir, voice) : null;
    if (kept !== null) return cardOf(voice, kept);
    try {
      return await fromHub(voice, signal);
    } catch (error) {
      // Put there by hand: no official voice, and without a card.
      if (isHere && error instanceof GatewayError && error.code === "voice_not_found") return cardOf(voice, null);
      throw error;
    }
  };
}

/** The licences of voices on the disk whose cards name one, by voice. */
export async function keptLicenses(voicesDir: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of await readdir(voicesDir).catch(() => [])) {
    if (!name.endsWith(ending)) continue;
    const voice = name.slice(0, -ending.length).normalize("NFC");
    const license = licenseOf((await keptCard(voicesDir, voice)) ?? "");
    if (license !== null) found.set(voice, license);
  }
  return found;
}

function cardOf(voice: string, card: string | null): VoiceCard {
  return { voice, license: card === null ? null : licenseOf(card), card };
}

/** What is longer than a card may be is cut off. */
async function keptCard(voicesDir: string, voice: string): Promise<string | null> {
  // Of a pipe nobody knows when it has something to read.
  const file = await open(join(voicesDir, `${voice}${ending}`), constants.O_RDONLY | constants.O_NONBLOCK).catch(
    () => null,
  );
  if (!file) return null;
  try {
    if (!(await file.stat()).isFile()) return null;
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(cardLimit) });
    return buffer.toString("utf8", 0, bytesRead);
  } catch {
    return null;
  } finally {
    await file.close();
  }
}
