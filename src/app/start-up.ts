// Steps of a start that serve no request: the first document, leftovers of earlier runs, the watch over the model cache.
import { access } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { cleanPartials } from "../cache/download/leftovers.ts";
import { systemCode } from "../core/errors.ts";
import { restoreReplaced } from "../desired/replace-file.ts";
import { openFiles } from "../engines/process/open-files.ts";
import { watchFiles, watchPlace } from "../observe/file-watch.ts";
import { packageRoot } from "../settings/settings.ts";
import { transcriptionRepo } from "../speech/transcription-models.ts";
import { voiceRepo } from "../speech/voices.ts";
import { firstDocument } from "../starter/first-document.ts";
import { starterFileName, starterModel } from "../starter/starter-model.ts";
import { isDiskRefusal, writeAtomic } from "../state/atomic-file.ts";
import { makeFolder } from "../state/folder.ts";
import { lookMs } from "../state/repeat.ts";
import type { Core } from "./core.ts";
import type { Base } from "./events.ts";

/** A start continues on a disk that takes no writes: `StateWritable` reports it, and chats are served. */
export async function unlessDiskRefuses(logger: Base["logger"], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isDiskRefusal(error)) throw error;
    logger.warn({ error: String(error) }, "the state folder cannot be written");
  }
}

/** Writes a commented gateway.yaml and the starter model on the first start. A file that was applied once and is gone stays away. */
export async function writeFirstDocument({ settings, store, logger }: Core): Promise<void> {
  const { configPath, command } = settings;
  await restoreReplaced(configPath);
  const exists = await access(configPath).then(
    () => true,
    (error: unknown) => systemCode(error) !== "ENOENT",
  );
  if (exists || store.hasAppliedFile()) return;
  const folder = dirname(configPath);
  await makeFolder(folder);
  await writeAtomic(join(folder, starterFileName), starterModel());
  const schema = join(packageRoot, "schemas", "gateway.schema.json");
  await writeAtomic(configPath, firstDocument(relative(folder, schema), command));
  logger.info({ path: configPath }, "wrote a first document, with a starter model");
}

/** Warns where the process may not open enough files for its connections. Linux only. */
export async function checkOpenFiles({ settings: { maxConnections }, logger }: Core): Promise<void> {
  const { limit, needed } = await openFiles(maxConnections, "self");
  if (limit === null || limit >= needed) return;
  logger.warn(
    `${limit} files may be open at once (ulimit -n), and --max-connections ${maxConnections} may need ${needed}: ` +
      "allow more, or fewer connections",
  );
}

/** Removes partial downloads now and after each change of the document; those of wanted models stay for the next pull. */
export async function keepPartialsClean(core: Core): Promise<void> {
  core.events.on("documentChanged", () => void removeLeftoverPartials(core));
  await removeLeftoverPartials(core);
}

async function removeLeftoverPartials({ settings, store, gatewayId, logger, warn }: Core): Promise<void> {
  if (settings.pulls === "off") return;
  // Read again for each partial: a model that had left the document may be back in it.
  const wanted = (): readonly string[] => {
    const { models, speech } = store.current().document;
    return [
      ...models.map(({ id }) => id),
      `${transcriptionRepo}:${speech?.transcription ?? ""}`,
      `${voiceRepo}:${speech?.synthesis ?? ""}`,
    ];
  };
  try {
    const partials = await cleanPartials(settings.cacheDir, wanted, gatewayId);
    if (partials.length > 0) logger.info({ partials }, "removed leftovers of earlier pulls");
  } catch (error) {
    warn("leftovers of earlier pulls could not be removed", { error: String(error) });
  }
}

/** Wakes the loop when the folder of the model cache comes or goes, or a model's file changes, until the signal aborts. */
export function watchCache({ settings, loop }: Core, signal: AbortSignal): void {
  const watches = [
    watchPlace(settings.cacheDir, lookMs, () => loop.wake()),
    watchFiles({
      everyMs: lookMs,
      configPath: settings.configPath,
      last: loop.last,
      onModel: () => loop.wake(),
      onSource: loop.retry,
    }),
  ];
  signal.addEventListener("abort", () => watches.forEach((end) => end()), { once: true });
}
