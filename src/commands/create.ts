// The edits, wired to the document and the loop.

import type { Catalog } from "../catalog/catalog.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Executor } from "../execute/executor.ts";
import type { SpeechStore } from "../execute/speech-files.ts";
import type { HubClient } from "../hub/client.ts";
import type { Loop } from "../reconcile/loop.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { StatusReport } from "../status/report.ts";
import { addAliasEdit, removeAliasEdit } from "./aliases.ts";
import type { Edits } from "./edits.ts";
import { ejectEdit } from "./eject.ts";
import { pullEdit } from "./pull-model.ts";
import type { PullTimes } from "./pull-patience.ts";
import { removeEdit } from "./remove-model.ts";
import { withSpeechRemoval } from "./remove-speech.ts";
import { rosterEdits } from "./roster.ts";
import { contextSizeEdit } from "./set-context-size.ts";

export interface EditsDeps extends Pick<PullTimes, "pullPatienceMs"> {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly scheduler: Scheduler;
  readonly catalog: Catalog;
  readonly executor: Executor;
  readonly hub: HubClient;
  readonly speechFiles: Pick<SpeechStore, "has" | "remove">;
  readonly status: () => StatusReport;
  readonly waitTimeoutMs: number;
  /** ms */
  readonly now: () => number;
}

export function createEdits(deps: EditsDeps): Edits {
  return {
    setContextSize: contextSizeEdit(deps),
    eject: ejectEdit(deps),
    remove: withSpeechRemoval(deps, removeEdit(deps)),
    pull: pullEdit(deps),
    addAlias: addAliasEdit(deps),
    removeAlias: removeAliasEdit(deps),
    ...rosterEdits(deps),
  };
}
