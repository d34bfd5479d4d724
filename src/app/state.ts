// What outlives the process: the state folder, the document, the inventory, and when models were used.
import { openInventory } from "../cache/inventory/inventory.ts";
import { openDesiredStore } from "../desired/store.ts";
import { openGatewayId } from "../state/gateway-id.ts";
import { openLastUsed } from "../state/last-used.ts";
import type { StateLock } from "../state/lock.ts";
import { createStateFolder } from "../state/state-folder.ts";
import type { Base } from "./events.ts";

export type State = Awaited<ReturnType<typeof openState>>;

/** Errors: `state_unwritable` for a file that can neither be read nor set aside. */
export async function openState({ settings, logger, warn, events }: Base, lock: StateLock) {
  const { stateDir, presetAllow } = settings;
  const stateFolder = createStateFolder({
    stateDir,
    hold: lock.hold,
    onChange: ({ writable, reason, message }) => {
      if (writable) logger.info({ reason }, message);
      else warn("the state folder takes no changes", { reason, problem: message });
      events.emit({ type: "changed" });
    },
  });
  const store = await openDesiredStore({ stateDir, presetAllow, now: Date.now, warn, files: stateFolder });
  store.onChange(({ generation }) => events.emit({ type: "documentChanged", generation }));
  return {
    stateFolder,
    store,
    inventory: await openInventory(stateDir, warn, stateFolder),
    lastUsed: await openLastUsed({ stateDir, now: Date.now, warn, files: stateFolder }),
    /** Tells it from other gateways that share its model cache. */
    gatewayId: await openGatewayId(stateDir, stateFolder),
  };
}
