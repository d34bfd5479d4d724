// The conditions of the gateway as a whole, as data.
import { type ConditionType, given, no, notObserved, unknown, yes } from "./reason.ts";

export const gatewayConditions = {
  Ready: {
    scope: "gateway",
    polarity: "positive",
    alsoFrom: "the reason of `RouterReady`; `TooFewWorkers`",
    reasons: {
      Serving: yes("The router answers."),
      ServingLastGood: yes("The router answers, but gateway.yaml is broken, or the state folder takes no changes.", {
        message: given,
      }),
      Stalled: no("An action has failed and is not retried.", { message: given }),
      ShuttingDown: no("The gateway is stopping."),
    },
  },
  SourceValid: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      Applied: yes("gateway.yaml is applied.", { message: given }),
      Unread: unknown("gateway.yaml was not read yet.", { message: given }),
      ParseError: no("gateway.yaml is not valid.", {
        message: given,
        remedy: "Correct the file at this line and column.",
      }),
      FileMissing: no("gateway.yaml is missing.", { message: given, remedy: "Put the file back." }),
      FileUnreadable: no("gateway.yaml cannot be read.", { message: given, remedy: "Check its permissions." }),
      StateUnwritable: no("The document could not be stored.", {
        message: given,
        remedy: "Make the state folder writable.",
      }),
      Conflict: no("gateway.yaml contradicts what API calls have set.", {
        message: given,
        remedy: "Change the file or the API's value.",
      }),
    },
  },
  StateWritable: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      Writable: yes("The state folder can be written.", { message: given }),
      FilesSetAside: yes("Damaged state files were renamed, and their content is not in force.", {
        message: given,
        remedy: "Check these files and delete them.",
      }),
      StateUnwritable: no("The state folder cannot be written.", {
        message: given,
        remedy: "Make the folder writable, or put the right one back.",
      }),
      DiskFull: no("The disk of the state folder is full.", { message: given, remedy: "Free disk space." }),
    },
  },
  Synced: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      AsDesired: yes("Everything is as the document says."),
      PruneHeld: yes("Models that left the document with its whole list are kept.", {
        message: (kept: string, remove: string) =>
          `Pruning leaves ${kept}, as the list of models was emptied. To delete one of them: \`${remove}\`.`,
        remedy: "Name the models to keep and set `allowEmpty: true` to have the others deleted.",
      }),
      PrunePending: yes("A model that left the document is deleted later; the message has the time.", {
        message: (what: string, when: string, because: string, more: number) =>
          `${what}${when}: ${because}${more > 0 ? ` (and ${more} more)` : ""}.`,
      }),
      OutOfSync: no("Actions are planned or running, or the router does not run.", { message: given }),
      CannotApply: no("A setting cannot be applied.", { message: given, remedy: "Correct the setting." }),
      SourceMissing: no("A model is here, but the file that its `source` names is not.", {
        message: given,
        remedy: "Put the file back, or correct `source`.",
      }),
      Suspended: no("The document has `suspend: true`: changes are planned and not made.", {
        message: given,
        remedy: "Set `suspend: false` to make them.",
      }),
      NotObserved: notObserved,
    },
  },
  Reconciling: {
    scope: "gateway",
    polarity: "negative",
    reasons: {
      Progressing: yes("Actions are running.", { message: given }),
      ProgressingWithRetry: yes("A failed action waits for its next try.", {
        message: (what: string) => `${what}: waits for its next try.`,
      }),
      Idle: no("No action is running."),
    },
  },
  Stalled: {
    scope: "gateway",
    polarity: "negative",
    alsoFrom: "the reason of the failed action",
    reasons: {
      Stalled: yes("An action has failed and is not retried.", {
        message: given,
        remedy: "Remove the cause, or call `POST /api/reconcile`.",
      }),
      NotStalled: no("No action is stalled."),
    },
  },
  RouterReady: {
    scope: "gateway",
    polarity: "positive",
    alsoFrom: "the reason of a failed start or a failed write of the preset file",
    reasons: {
      Running: yes("The router runs and answers.", { message: (pid: number) => `The router runs as process ${pid}.` }),
      NotStarted: no("The router does not run yet."),
      Starting: no("The router is starting."),
      EngineInstalling: no("llama-server is being installed."),
      EngineMissing: no("There is no llama-server.", {
        message: given,
        remedy: "Run `model-gateway engine install`, or set `--llama-server`.",
      }),
      RouterCrashed: no("The router exited by itself and is restarted.", {
        message: (stderrTail: string) => `The router exited by itself and is restarted. Its last output: ${stderrTail}`,
      }),
      RouterSilent: no("The router does not answer and is restarted after `--silence-limit`."),
      PresetUnreadable: no("The preset file cannot be read.", {
        message: given,
        remedy: "Replace it by a readable file, or delete it.",
      }),
      CacheUnreadable: no("The model cache cannot be read; the message says why.", {
        message: given,
        remedy: "Put the model cache back.",
      }),
    },
  },
  CacheReadable: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      Readable: yes("Every repository in the model cache can be read."),
      EntriesUnreadable: no(
        "Some entries cannot be read. The router, which would not start with them, is not given their repositories.",
        {
          message: (entries: string) => `Entries of the model cache cannot be read: ${entries}.`,
          remedy: "Delete or repair these entries.",
        },
      ),
      NotObserved: notObserved,
    },
  },
  DiskRoom: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      Enough: yes("At least 512 MiB are free.", {
        message: (megabytes: number) => `${megabytes} MB are free on the disk of the model cache.`,
      }),
      DiskFull: no("A pull needs more disk space than there is, or less than 512 MiB are free.", {
        message: given,
        remedy: "Delete models or other files.",
      }),
      NotObserved: notObserved,
    },
  },
  HubReachable: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      Answered: yes("The hub answered the last request.", { message: given }),
      NotTried: unknown("The hub was not needed yet."),
      HubUnreachable: no("The hub did not answer the last request.", {
        message: given,
        remedy: "Check the network, or `HF_ENDPOINT`.",
      }),
    },
  },
  WorkersReady: {
    scope: "gateway",
    polarity: "positive",
    reasons: {
      NotUsed: yes("Models run on this machine alone (`mode: single`)."),
      AllReachable: yes("All RPC workers can be used.", { message: given }),
      WorkersMissing: no("Some workers cannot be used; models run with the others, or on this machine alone.", {
        message: given,
        remedy: "Start the missing workers.",
      }),
      TooFewWorkers: no("Fewer workers can be used than `rpc.minWorkers`; no further model is loaded.", {
        message: given,
        remedy: "Start workers, or lower `rpc.minWorkers`.",
      }),
      NotProbed: unknown("The workers are being probed."),
    },
  },
} as const satisfies Readonly<Record<string, ConditionType>>;
