// What outlives the process: the document, the inventory, and when models were used. Also for a look from outside.
import { openInventory } from "../cache/inventory/inventory.ts";
import { openHistory } from "../desired/history/book.ts";
import { managedBy } from "../desired/managed.ts";
import { openDesiredStore } from "../desired/store.ts";
import { openMemoryBook } from "../memory/book.ts";
import { openLastUsed } from "../state/last-used.ts";
import { openLoadBook } from "../state/load-book.ts";
import { openGatewayId, type StateFiles } from "../state/state-folder.ts";
import type { Base } from "./events.ts";

export type State = Awaited<ReturnType<typeof openState>>;

/** Errors: `state_unwritable` for a file that can neither be read nor set aside. */
export async function openState({ settings, warn, events }: Base, files: StateFiles) {
  const { stateDir, presetAllow } = settings;
  const common = { stateDir, now: Date.now, warn, files };
  const history = await openHistory(common);
  const managed = settings.writes === "file" ? managedBy(settings.configPath) : undefined;
  const store = await openDesiredStore({ ...common, presetAllow, generationOf: history.generationOf, managed });
  history.follow(store);
  store.onChange(({ generation }) => events.emit("documentChanged", generation));
  return {
    store,
    history,
    inventory: await openInventory(stateDir, warn, files),
    lastUsed: await openLastUsed(common),
    loads: await openLoadBook(common),
    memoryBook: await openMemoryBook(common),
    /** Tells it from other gateways that share its model cache. */
    gatewayId: await openGatewayId(stateDir, files),
  };
}
