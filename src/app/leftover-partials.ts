// What pulls that broke off have left in the model cache, and nobody goes on with.
import type { FastifyBaseLogger } from "fastify";
import { cleanPartials } from "../cache/download/partials.ts";
import { transcriptionRepo } from "../speech/transcription-models.ts";
import { voiceRepo } from "../speech/voices.ts";
import type { Core } from "./core.ts";

/** Of models that are wanted they stay: the next pull goes on with them. */
export async function removeLeftoverPartials(
  cacheDir: string,
  { store, gatewayId }: Pick<Core, "store" | "gatewayId">,
  logger: FastifyBaseLogger,
): Promise<void> {
  // Asked anew for each: what was taken out of the document may be back in it by then.
  const wanted = (): readonly string[] => {
    const { models, speech } = store.current().document;
    const { transcription, synthesis } = speech ?? { transcription: null, synthesis: null };
    return [
      ...models.map(({ id }) => id),
      ...(transcription === null ? [] : [`${transcriptionRepo}:${transcription}`]),
      ...(synthesis === null ? [] : [`${voiceRepo}:${synthesis}`]),
    ];
  };
  try {
    const partials = await cleanPartials(cacheDir, wanted, gatewayId);
    if (partials.length > 0) logger.info({ partials }, "removed leftovers of earlier pulls");
  } catch (error) {
    logger.warn({ error: String(error) }, "leftovers of earlier pulls could not be removed");
  }
}
