// Every condition as data: its reasons, what each means, and what a person does about it. Pure.

export type Truth = "True" | "False" | "Unknown";

interface Reason {
  readonly status: Truth;
  /** For the docs; also the message, where the part that found out gives none. */
  readonly meaning: string;
  /** An imperative. It follows the message. */
  readonly remedy: string | null;
}

export interface ConditionType {
  /** Its `type` in a report, where another subject has a condition of the same name. */
  readonly type?: string;
  readonly scope: "gateway" | "speech" | "model" | "worker";
  /** `positive`: True is how it should be. `negative`: False is. */
  readonly polarity: "positive" | "negative";
  /** When it is reported, if not always. */
  readonly only?: string;
  /** Where reasons come from that are not listed here. */
  readonly alsoFrom?: string;
  readonly reasons: Readonly<Record<string, Reason>>;
}

const reasonWith =
  (status: Truth) =>
  (meaning: string, remedy: string | null = null): Reason => ({ status, meaning, remedy });
const yes = reasonWith("True");
const no = reasonWith("False");
const unknown = reasonWith("Unknown");

const conditionOf =
  (polarity: ConditionType["polarity"]) =>
  <Reasons extends ConditionType["reasons"]>(
    scope: ConditionType["scope"],
    reasons: Reasons,
    notes: Pick<ConditionType, "type" | "only" | "alsoFrom"> = {},
  ) => ({ scope, polarity, reasons, ...notes });
const positive = conditionOf("positive");
const negative = conditionOf("negative");

const notObserved = unknown("It cannot be read at the moment; the message has the cause.");

/** By type or, where two subjects share one, by a name of its own; in the order of the docs. */
export const conditionTable = {
  Ready: positive(
    "gateway",
    {
      Serving: yes("The router answers."),
      ServingLastGood: yes("The router answers, but gateway.yaml is broken, or the state folder takes no changes."),
      Stalled: no("An action has failed and is not retried."),
      ShuttingDown: no("The gateway is stopping."),
    },
    { alsoFrom: "the reason of `RouterReady`; `TooFewWorkers`" },
  ),
  Healthy: positive(
    "gateway",
    {
      NothingFails: yes("Nothing fails, and nothing needs a hand."),
      ModelsFail: no(
        "Models that the document names cannot be had, loaded or set up; the message names them.",
        "Correct what the message says, or take them out of the document.",
      ),
    },
    { alsoFrom: "the reason of `RouterReady`, `SourceValid`, `StateWritable` or `Stalled`; `TooFewWorkers`" },
  ),
  SourceValid: positive("gateway", {
    Applied: yes("gateway.yaml is applied."),
    WriteBackFailed: yes(
      "Changes of calls could not be written into gateway.yaml.",
      "Make the file and its folder writable; a file that is a mount of its own cannot be replaced.",
    ),
    Unread: unknown("gateway.yaml was not read yet."),
    ParseError: no("gateway.yaml is not valid.", "Correct the file at this line and column."),
    FileMissing: no("gateway.yaml is missing.", "Put the file back."),
    FileUnreadable: no("gateway.yaml cannot be read.", "Check its permissions."),
    StateUnwritable: no("The document could not be stored.", "Make the state folder writable."),
    Conflict: no("gateway.yaml contradicts what API calls have set.", "Change the file or the API's value."),
  }),
  StateWritable: positive("gateway", {
    Writable: yes("The state folder can be written."),
    FilesSetAside: yes("Damaged state files were renamed and are not in force.", "Check these files and delete them."),
    StateUnwritable: no("The state folder cannot be written.", "Make the folder writable, or put the right one back."),
    DiskFull: no("The disk of the state folder is full.", "Free disk space."),
  }),
  Synced: positive("gateway", {
    AsDesired: yes("Everything is as the document says."),
    PruneHeld: yes(
      "Models that left the document with its whole list are kept.",
      "Name the models to keep and set `allowEmpty: true` to have the others deleted.",
    ),
    PrunePending: yes("A model that left the document is deleted later; the message has the time."),
    OutOfSync: no("Actions are planned or running, or the router does not run."),
    CannotApply: no("A setting cannot be applied.", "Correct the setting."),
    SourceMissing: no("The file that a model's `source` names is gone.", "Put the file back, or correct `source`."),
    RolledBack: no(
      "A model runs with its last settings that worked, as it could not be loaded with those of the document.",
      "Correct its settings; to try them again, call `POST /api/reconcile`.",
    ),
    Suspended: no("The document has `suspend: true`: changes are not made.", "Set `suspend: false` to make them."),
    NotObserved: notObserved,
  }),
  Reconciling: negative("gateway", {
    Progressing: yes("Actions are running."),
    ProgressingWithRetry: yes("A failed action waits for its next try."),
    Idle: no("No action is running."),
  }),
  Stalled: negative(
    "gateway",
    {
      Stalled: yes("An action has failed and is not retried.", "Remove the cause, or call `POST /api/reconcile`."),
      NotStalled: no("No action is stalled."),
    },
    { alsoFrom: "the reason of the failed action" },
  ),
  RouterReady: positive(
    "gateway",
    {
      Running: yes("The router runs and answers."),
      NotStarted: no("The router does not run yet."),
      Starting: no("The router is starting."),
      EngineInstalling: no("llama-server is being installed."),
      EngineMissing: no("There is no llama-server.", "Run `model-gateway engine install`, or set `--llama-server`."),
      RouterCrashed: no("The router exited by itself and is restarted."),
      RouterSilent: no("The router does not answer and is restarted after `--silence-limit`."),
      PresetUnreadable: no("The preset file cannot be read.", "Replace it by a readable file, or delete it."),
      CacheUnreadable: no("The model cache cannot be read; the message says why.", "Put the model cache back."),
    },
    { alsoFrom: "the reason of a failed start or a failed write of the preset file" },
  ),
  CacheReadable: positive("gateway", {
    Readable: yes("Every repository in the model cache can be read."),
    EntriesUnreadable: no(
      "Some entries cannot be read. The router, which would not start with them, is not given their repositories.",
      "Delete or repair these entries.",
    ),
    NotObserved: notObserved,
  }),
  DiskRoom: positive("gateway", {
    Enough: yes("At least 512 MiB are free."),
    DiskFull: no("There is too little space for a pull, or less than 512 MiB.", "Delete models or other files."),
    NotObserved: notObserved,
  }),
  HubReachable: positive("gateway", {
    Answered: yes("The hub answered the last request."),
    NotTried: unknown("The hub was not needed yet."),
    HubUnreachable: no("The hub did not answer the last request.", "Check the network, or `HF_ENDPOINT`."),
  }),
  WorkersReady: positive("gateway", {
    NotUsed: yes("Models run on this machine alone (`mode: single`)."),
    AllReachable: yes("All RPC workers can be used."),
    WorkersMissing: no(
      "Some workers cannot be used; models run with the others or alone.",
      "Start the missing workers.",
    ),
    TooFewWorkers: no(
      "Fewer workers can be used than `rpc.minWorkers`; no further model is loaded.",
      "Start workers, or lower `rpc.minWorkers`.",
    ),
    NotProbed: unknown("The workers are being probed."),
  }),

  SpeechReady: positive(
    "speech",
    {
      Serving: yes("The engines run."),
      Idle: yes("An engine starts with the first request."),
      EngineMissing: no("There is no engine; the message names the command that installs it."),
      ModelMissing: no("The transcription model is being pulled, or cannot be; the message has the cause."),
      VoiceMissing: no("The voice is being pulled, or cannot be; the message has the cause."),
      HubUnreachable: no("The hub does not answer. Check the network, or `HF_ENDPOINT`."),
      EngineFailed: no("An engine exited by itself repeatedly; the message has the time of its next start."),
      Starting: no("An engine is starting."),
      Changing: no("Requests under way are finished first, then the engine restarts with another choice."),
      NotAnswering: no("An engine does not answer; it is restarted after `--silence-limit`."),
    },
    { only: "where the document has `speech`", alsoFrom: "the reason of a failed start" },
  ),
  ModelReady: positive(
    "model",
    {
      Loaded: yes("It is loaded."),
      OnDemand: yes("It is loaded with the first request."),
    },
    { type: "Ready", alsoFrom: "the reason of `Present`, `Loaded` or `RouterReady`; `TooFewWorkers`" },
  ),
  Present: positive(
    "model",
    {
      Cached: yes("All files are in the model cache."),
      Absent: no("It is not in the model cache."),
      Pulling: no("It is being downloaded."),
      Queued: no("Other pulls come first."),
      Incomplete: no("Files are missing or damaged; they are downloaded again if the document names the model."),
      DiskFull: no("There is not enough disk space for it.", "Free disk space."),
      WaitingForWriter: no("Another gateway is to store it in the shared cache (`--pulls off`)."),
      NotObserved: notObserved,
    },
    { alsoFrom: "the reason of a failed pull" },
  ),
  Verified: positive("model", {
    ChecksumMatched: yes("Its SHA-256 was checked when this gateway stored it or found it in the cache."),
    Damaged: no("A file has another size or SHA-256 than the one stored."),
    NotOurs: unknown("Another program stored it; it was not checked here."),
    Absent: unknown("There is nothing to verify."),
  }),
  Applied: positive(
    "model",
    {
      InForce: yes("Its settings are in force."),
      Pending: no("Its settings are not in force yet."),
      NotListed: no("The router does not list it yet."),
      CannotApply: no("A setting cannot be applied.", "Correct the setting."),
      SourceMissing: no("The file that its `source` names is missing.", "Put the file back, or correct `source`."),
      RolledBack: no(
        "It could not be loaded with the settings of the document; its last ones that worked are in force.",
        "Correct its settings; to try them again, call `POST /api/reconcile`.",
      ),
      Absent: no("Its settings apply once it is in the model cache."),
      NotObserved: unknown("The router or its preset file cannot be read."),
    },
    { alsoFrom: "the reason of a failed pull or import of other files" },
  ),
  Loaded: positive("model", {
    Loaded: yes("It is loaded."),
    Unloaded: no("It is not loaded."),
    Loading: no("It is being loaded."),
    Verifying: no("Its process has started, and is given requests after its first token."),
    LoadFailed: no(
      "Its last process did not end in order.",
      "Read the engine's last output with `logs`; the next request loads it.",
    ),
    LoadFailing: no(
      "Its loads fail; the message has the engine's last output and the time of the next try.",
      "Correct its file or its settings; to try again now, call `POST /v1/models/load` or `POST /api/reconcile`.",
    ),
    NotListed: no("The router does not list it."),
    NotObserved: notObserved,
  }),
  Fits: positive(
    "model",
    {
      Fits: yes("It fits into the memory that models may take; the message has the numbers."),
      TooLarge: no(
        "It needs more memory than models may take; the message has the largest context that would fit.",
        "Set the context of the message, if it has one, use a smaller file of the model, or let models take more memory.",
      ),
      Refused: no(
        "The engine refuses its settings or its file; the message has the engine's words. A load would fail too.",
        "Correct the setting, or replace the file.",
      ),
      Estimating: unknown("The engine is being asked what it needs."),
      NotEstimated: unknown("What it needs is not known; the message says why."),
      Absent: unknown("It is not in the model cache."),
    },
    { only: "of models that the document names" },
  ),
  Reachable: positive("worker", {
    Answering: yes("It answers."),
    NotProbed: unknown("It was not probed yet."),
    Refused: no("No process listens on its port.", "Start the worker."),
    Unreachable: no("It takes no connection.", "Check the network."),
    Unresolvable: no("Its name has no address.", "Check the name."),
    NotAnswering: no("It connects and does not answer: it hangs, or serves another client.", "Restart the worker."),
    NotAWorker: no("Another kind of server listens there.", "Correct the address."),
    NoDevices: no("It has no device to compute with."),
    Lost: no("It was lost while a model used it."),
    Stabilizing: no("It answers again and is used once it has answered for `--worker-stable`."),
    PublicAddress: no("Its address is public.", "Use a private address, or set `allowPublicWorkers`."),
    Invalid: no("Its name resolves to an address that no machine has.", "Correct the name."),
  }),
  InUse: positive("worker", {
    ServesModel: yes("A model uses it."),
    Idle: no("No model uses it."),
  }),
};
