// The conditions of the gateway as a whole, as data.
import { given, negative, no, notObserved, positive, unknown, yes } from "./reason.ts";

export const gatewayConditions = {
  Ready: positive(
    "gateway",
    {
      Serving: yes("The router answers."),
      ServingLastGood: yes(
        "The router answers, but gateway.yaml is broken, or the state folder takes no changes.",
        given,
      ),
      Stalled: no("An action has failed and is not retried.", given),
      ShuttingDown: no("The gateway is stopping."),
    },
    { alsoFrom: "the reason of `RouterReady`; `TooFewWorkers`" },
  ),
  SourceValid: positive("gateway", {
    Applied: yes("gateway.yaml is applied.", given),
    Unread: unknown("gateway.yaml was not read yet.", given),
    ParseError: no("gateway.yaml is not valid.", given, "Correct the file at this line and column."),
    FileMissing: no("gateway.yaml is missing.", given, "Put the file back."),
    FileUnreadable: no("gateway.yaml cannot be read.", given, "Check its permissions."),
    StateUnwritable: no("The document could not be stored.", given, "Make the state folder writable."),
    Conflict: no("gateway.yaml contradicts what API calls have set.", given, "Change the file or the API's value."),
  }),
  StateWritable: positive("gateway", {
    Writable: yes("The state folder can be written.", given),
    FilesSetAside: yes(
      "Damaged state files were renamed, and their content is not in force.",
      given,
      "Check these files and delete them.",
    ),
    StateUnwritable: no(
      "The state folder cannot be written.",
      given,
      "Make the folder writable, or put the right one back.",
    ),
    DiskFull: no("The disk of the state folder is full.", given, "Free disk space."),
  }),
  Synced: positive("gateway", {
    AsDesired: yes("Everything is as the document says."),
    PruneHeld: yes(
      "Models that left the document with its whole list are kept.",
      (kept: string, remove: string) =>
        `Pruning leaves ${kept}, as the list of models was emptied. To delete one of them: \`${remove}\`.`,
      "Name the models to keep and set `allowEmpty: true` to have the others deleted.",
    ),
    PrunePending: yes(
      "A model that left the document is deleted later; the message has the time.",
      (what: string, when: string, because: string, more: number) =>
        `${what}${when}: ${because}${more > 0 ? ` (and ${more} more)` : ""}.`,
    ),
    OutOfSync: no("Actions are planned or running, or the router does not run.", given),
    CannotApply: no("A setting cannot be applied.", given, "Correct the setting."),
    SourceMissing: no(
      "A model is here, but the file that its `source` names is not.",
      given,
      "Put the file back, or correct `source`.",
    ),
    Suspended: no(
      "The document has `suspend: true`: changes are planned and not made.",
      given,
      "Set `suspend: false` to make them.",
    ),
    NotObserved: notObserved,
  }),
  Reconciling: negative("gateway", {
    Progressing: yes("Actions are running.", given),
    ProgressingWithRetry: yes(
      "A failed action waits for its next try.",
      (what: string) => `${what}: waits for its next try.`,
    ),
    Idle: no("No action is running."),
  }),
  Stalled: negative(
    "gateway",
    {
      Stalled: yes(
        "An action has failed and is not retried.",
        given,
        "Remove the cause, or call `POST /api/reconcile`.",
      ),
      NotStalled: no("No action is stalled."),
    },
    { alsoFrom: "the reason of the failed action" },
  ),
  RouterReady: positive(
    "gateway",
    {
      Running: yes("The router runs and answers.", (pid: number) => `The router runs as process ${pid}.`),
      NotStarted: no("The router does not run yet."),
      Starting: no("The router is starting."),
      EngineInstalling: no("llama-server is being installed."),
      EngineMissing: no(
        "There is no llama-server.",
        given,
        "Run `model-gateway engine install`, or set `--llama-server`.",
      ),
      RouterCrashed: no(
        "The router exited by itself and is restarted.",
        (stderrTail: string) => `The router exited by itself and is restarted. Its last output: ${stderrTail}`,
      ),
      RouterSilent: no("The router does not answer and is restarted after `--silence-limit`."),
      PresetUnreadable: no("The preset file cannot be read.", given, "Replace it by a readable file, or delete it."),
      CacheUnreadable: no("The model cache cannot be read; the message says why.", given, "Put the model cache back."),
    },
    { alsoFrom: "the reason of a failed start or a failed write of the preset file" },
  ),
  CacheReadable: positive("gateway", {
    Readable: yes("Every repository in the model cache can be read."),
    EntriesUnreadable: no(
      "Some entries cannot be read. The router, which would not start with them, is not given their repositories.",
      (entries: string) => `Entries of the model cache cannot be read: ${entries}.`,
      "Delete or repair these entries.",
    ),
    NotObserved: notObserved,
  }),
  DiskRoom: positive("gateway", {
    Enough: yes(
      "At least 512 MiB are free.",
      (megabytes: number) => `${megabytes} MB are free on the disk of the model cache.`,
    ),
    DiskFull: no(
      "A pull needs more disk space than there is, or less than 512 MiB are free.",
      given,
      "Delete models or other files.",
    ),
    NotObserved: notObserved,
  }),
  HubReachable: positive("gateway", {
    Answered: yes("The hub answered the last request.", given),
    NotTried: unknown("The hub was not needed yet."),
    HubUnreachable: no("The hub did not answer the last request.", given, "Check the network, or `HF_ENDPOINT`."),
  }),
  WorkersReady: positive("gateway", {
    NotUsed: yes("Models run on this machine alone (`mode: single`)."),
    AllReachable: yes("All RPC workers can be used.", given),
    WorkersMissing: no(
      "Some workers cannot be used; models run with the others, or on this machine alone.",
      given,
      "Start the missing workers.",
    ),
    TooFewWorkers: no(
      "Fewer workers can be used than `rpc.minWorkers`; no further model is loaded.",
      given,
      "Start workers, or lower `rpc.minWorkers`.",
    ),
    NotProbed: unknown("The workers are being probed."),
  }),
};
