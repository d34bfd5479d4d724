// What outlives the process, opened: the state folder, the document, the inventory, and when models were used.
import type { FastifyBaseLogger } from "fastify";
import { type Inventory, openInventory } from "../cache/inventory/inventory.ts";
import { createDamage, type Damage } from "../cache/scan/damage.ts";
import { type CachePresence, createCachePresence } from "../cache/scan/presence.ts";
import { type CacheScanner, createCacheScanner } from "../cache/scan/scan.ts";
import { type DesiredStore, openDesiredStore } from "../desired/store.ts";
import type { Settings } from "../settings/settings.ts";
import { isDiskRefusal } from "../state/atomic-file.ts";
import { openGatewayId } from "../state/gateway-id.ts";
import { type LastUsed, openLastUsed } from "../state/last-used.ts";
import { createStateFolder, type StateFolder } from "../state/state-folder.ts";
import type { Events } from "./events.ts";
import { warnTo } from "./warn.ts";

export interface Kept {
  readonly stateFolder: StateFolder;
  readonly store: DesiredStore;
  readonly inventory: Inventory;
  readonly lastUsed: LastUsed;
  /** Tells it from others that share its model cache. */
  readonly gatewayId: string;
}

/** Errors: `state_unwritable` for a file that can neither be read nor set aside. */
export async function openKept(options: {
  readonly settings: Pick<Settings, "stateDir" | "presetAllow">;
  /** Of the state folder's lock. */
  readonly hold: () => Promise<void>;
  readonly logger: FastifyBaseLogger;
  readonly events: Events;
}): Promise<Kept> {
  const { logger, events } = options;
  const { stateDir, presetAllow } = options.settings;
  const warn = warnTo(logger);
  const files = createStateFolder({
    stateDir,
    hold: options.hold,
    onChange: ({ writable, reason, message }) => {
      if (writable) logger.info({ reason }, message);
      else warn("the state folder takes no changes", { reason, problem: message });
      events.emit({ type: "changed", what: "state folder" });
    },
  });
  const store = await openDesiredStore({ stateDir, presetAllow, now: Date.now, warn, files });
  store.onChange(({ generation }) => events.emit({ type: "documentChanged", generation }));
  return {
    stateFolder: files,
    store,
    inventory: await openInventory(stateDir, warn, files),
    lastUsed: await openLastUsed({ stateDir, now: Date.now, warn, files }),
    gatewayId: await openGatewayId(stateDir, files),
  };
}

/** A disk that takes no writes keeps no gateway from its start: `StateWritable` reports it, and chats go on. */
export async function unlessDiskRefuses(logger: FastifyBaseLogger, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isDiskRefusal(error)) throw error;
    logger.warn({ error: String(error) }, "the state folder cannot be written");
  }
}

/** Reads the model cache, and doubts what the inventory gainsays. */
export function openCache(
  cacheDir: string,
  inventory: Inventory,
): { readonly scanner: CacheScanner; readonly presence: CachePresence; readonly damage: Damage } {
  const presence = createCachePresence(cacheDir, () => ({
    count: inventory.entries().length,
    place: inventory.place(),
  }));
  const damage = createDamage(cacheDir, inventory.entries);
  return { scanner: createCacheScanner(cacheDir, presence, inventory.entries, damage.has), presence, damage };
}
