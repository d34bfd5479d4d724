// The conditions of speech, of each model and of each RPC worker, as data.
import { type ConditionType, given, no, notObserved, unknown, yes } from "./reason.ts";

export const partConditions = {
  SpeechReady: {
    scope: "speech",
    polarity: "positive",
    only: "where the document has `speech`",
    alsoFrom: "the reason of a failed start",
    reasons: {
      Serving: yes("The engines run.", { message: (kind: string, choice: string) => `${kind} runs with ${choice}` }),
      Idle: yes("An engine starts with the first request.", { message: given }),
      EngineMissing: no("There is no engine; the message names the command that installs it.", { message: given }),
      ModelMissing: no("The transcription model is being pulled, or cannot be; the message has the cause.", {
        message: given,
      }),
      VoiceMissing: no("The voice is being pulled, or cannot be; the message has the cause.", { message: given }),
      HubUnreachable: no("The hub does not answer. Check the network, or `HF_ENDPOINT`.", { message: given }),
      EngineFailed: no("An engine exited by itself repeatedly; the message has the time of its next start.", {
        message: given,
      }),
      Starting: no("An engine is starting.", {
        message: (kind: string, choice: string) => `${kind} is starting with ${choice}`,
      }),
      Changing: no("Requests under way are finished first, then the engine restarts with another choice.", {
        message: (kind: string, choice: string) => `${kind} still runs with ${choice}`,
      }),
      NotAnswering: no("An engine does not answer; it is restarted after `--silence-limit`.", {
        message: (kind: string) => `${kind} does not answer; it is restarted if that lasts`,
      }),
    },
  },
  Present: {
    scope: "model",
    polarity: "positive",
    alsoFrom: "the reason of a failed pull",
    reasons: {
      Cached: yes("All files are in the model cache.", {
        message: (files: number, bytes: number) => `${files} file(s) with ${bytes} bytes are in the model cache.`,
      }),
      Absent: no("It is not in the model cache.", { message: given }),
      Pulling: no("It is being downloaded.", { message: given }),
      Queued: no("Other pulls come first.", { message: (action: string) => `${action}: waits for other actions.` }),
      Incomplete: no("Files are missing or damaged; they are downloaded again if the document names the model.", {
        message: given,
      }),
      DiskFull: no("There is not enough disk space for it.", { message: given, remedy: "Free disk space." }),
      NotObserved: notObserved,
    },
  },
  Verified: {
    scope: "model",
    polarity: "positive",
    reasons: {
      ChecksumMatched: yes("Its SHA-256 was checked when this gateway stored it or found it in the cache.", {
        message: (done: string) => `Its SHA-256 was checked when this gateway ${done}.`,
      }),
      Damaged: no("A file has another size or SHA-256 than the one stored.", { message: given }),
      NotOurs: unknown("Another program stored it; it was not checked here."),
      Absent: unknown("There is nothing to verify."),
    },
  },
  Applied: {
    scope: "model",
    polarity: "positive",
    alsoFrom: "the reason of a failed pull or import of other files",
    reasons: {
      InForce: yes("Its settings are in force.", {
        message: (size: string, notes: string) => `It runs with ${size}${notes}.`,
      }),
      Pending: no("Its settings are not in force yet.", {
        message: (size: string) => `It does not run with ${size} yet.`,
      }),
      NotListed: no("The router does not list it yet."),
      CannotApply: no("A setting cannot be applied.", { message: given, remedy: "Correct the setting." }),
      SourceMissing: no("The file that its `source` names is missing.", {
        message: given,
        remedy: "Put the file back, or correct `source`.",
      }),
      Absent: no("Its settings apply once it is in the model cache."),
      NotObserved: unknown("The router or its preset file cannot be read."),
    },
  },
  Loaded: {
    scope: "model",
    polarity: "positive",
    reasons: {
      Loaded: yes("It is loaded.", { message: (tokens: string) => `It is loaded with ${tokens} tokens of context.` }),
      Unloaded: no("It is not loaded.", { message: (state: string) => `The router reports it as ${state}.` }),
      Loading: no("It is being loaded."),
      LoadFailed: no("Its last load failed."),
      LoadFailing: no("Its loads fail; the message has the engine's last output and the time of the next try.", {
        message: (loads: string, error: string, until: string) =>
          `${loads} failed: ${error}. The next try is not before ${until}.`,
        remedy:
          "Correct its file or its settings; to try again now, call `POST /v1/models/load` or `POST /api/reconcile`.",
      }),
      NotListed: no("The router does not list it."),
      NotObserved: notObserved,
    },
  },
  Drained: {
    scope: "model",
    polarity: "positive",
    only: "once a change has waited for its requests",
    reasons: {
      Drained: yes("Its last change cut no request."),
      DrainTimedOut: no("Its last change cut requests that took longer than `--drain-timeout`.", {
        message: (when: string, count: number, seconds: number) =>
          `Its last change, at ${when}, cut ${count} answer(s) that took longer than the ${seconds} s of --drain-timeout.`,
        remedy: "Raise `--drain-timeout`, or make changes while no client chats.",
      }),
    },
  },
  Reachable: {
    scope: "worker",
    polarity: "positive",
    reasons: {
      Answering: yes("It answers.", { message: given }),
      NotProbed: unknown("It was not probed yet."),
      Refused: no("No process listens on its port.", { message: given, remedy: "Start the worker." }),
      Unreachable: no("It takes no connection.", { message: given, remedy: "Check the network." }),
      Unresolvable: no("Its name has no address.", { message: given, remedy: "Check the name." }),
      NotAnswering: no("It takes connections and does not answer: it hangs, or serves another client.", {
        message: given,
        remedy: "Restart the worker.",
      }),
      NotAWorker: no("Another kind of server listens there.", { message: given, remedy: "Correct the address." }),
      NoDevices: no("It has no device to compute with.", { message: given }),
      Duplicate: no("It is another name of a worker on the list.", {
        message: given,
        remedy: "Remove it from the list.",
      }),
      Lost: no("It was lost while a model used it.", { message: given }),
      Stabilizing: no("It answers again and is used once it has answered for `--worker-stable`.", { message: given }),
      Flapping: no("It was lost three times or more in ten minutes, so it stays out longer.", { message: given }),
      PublicAddress: no("Its address is public.", {
        message: given,
        remedy: "Use a private address, or set `allowPublicWorkers`.",
      }),
      Invalid: no("Its name resolves to an address that no machine has.", {
        message: given,
        remedy: "Correct the name.",
      }),
    },
  },
  InUse: {
    scope: "worker",
    polarity: "positive",
    reasons: {
      ServesModel: yes("A model uses it.", { message: (model: string) => `${model} uses it.` }),
      Idle: no("No model uses it."),
      WaitingForDrain: no("It is back, and is used once all requests under way have finished."),
    },
  },
} as const satisfies Readonly<Record<string, ConditionType>>;
