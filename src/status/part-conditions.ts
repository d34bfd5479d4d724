// The conditions of speech, of each model and of each RPC worker, as data.
import { given, no, notObserved, positive, unknown, yes } from "./reason.ts";

export const partConditions = {
  SpeechReady: positive(
    "speech",
    {
      Serving: yes("The engines run.", (kind: string, choice: string) => `${kind} runs with ${choice}`),
      Idle: yes("An engine starts with the first request.", given),
      EngineMissing: no("There is no engine; the message names the command that installs it.", given),
      ModelMissing: no("The transcription model is being pulled, or cannot be; the message has the cause.", given),
      VoiceMissing: no("The voice is being pulled, or cannot be; the message has the cause.", given),
      HubUnreachable: no("The hub does not answer. Check the network, or `HF_ENDPOINT`.", given),
      EngineFailed: no("An engine exited by itself repeatedly; the message has the time of its next start.", given),
      Starting: no("An engine is starting.", (kind: string, choice: string) => `${kind} is starting with ${choice}`),
      Changing: no(
        "Requests under way are finished first, then the engine restarts with another choice.",
        (kind: string, choice: string) => `${kind} still runs with ${choice}`,
      ),
      NotAnswering: no(
        "An engine does not answer; it is restarted after `--silence-limit`.",
        (kind: string) => `${kind} does not answer; it is restarted if that lasts`,
      ),
    },
    { only: "where the document has `speech`", alsoFrom: "the reason of a failed start" },
  ),
  Present: positive(
    "model",
    {
      Cached: yes(
        "All files are in the model cache.",
        (files: number, bytes: number) => `${files} file(s) with ${bytes} bytes are in the model cache.`,
      ),
      Absent: no("It is not in the model cache.", given),
      Pulling: no("It is being downloaded.", given),
      Queued: no("Other pulls come first.", (action: string) => `${action}: waits for other actions.`),
      Incomplete: no("Files are missing or damaged; they are downloaded again if the document names the model.", given),
      DiskFull: no("There is not enough disk space for it.", given, "Free disk space."),
      NotObserved: notObserved,
    },
    { alsoFrom: "the reason of a failed pull" },
  ),
  Verified: positive("model", {
    ChecksumMatched: yes(
      "Its SHA-256 was checked when this gateway stored it or found it in the cache.",
      (done: string) => `Its SHA-256 was checked when this gateway ${done}.`,
    ),
    Damaged: no("A file has another size or SHA-256 than the one stored.", given),
    NotOurs: unknown("Another program stored it; it was not checked here."),
    Absent: unknown("There is nothing to verify."),
  }),
  Applied: positive(
    "model",
    {
      InForce: yes("Its settings are in force.", (size: string, notes: string) => `It runs with ${size}${notes}.`),
      Pending: no("Its settings are not in force yet.", (size: string) => `It does not run with ${size} yet.`),
      NotListed: no("The router does not list it yet."),
      CannotApply: no("A setting cannot be applied.", given, "Correct the setting."),
      SourceMissing: no(
        "The file that its `source` names is missing.",
        given,
        "Put the file back, or correct `source`.",
      ),
      Absent: no("Its settings apply once it is in the model cache."),
      NotObserved: unknown("The router or its preset file cannot be read."),
    },
    { alsoFrom: "the reason of a failed pull or import of other files" },
  ),
  Loaded: positive("model", {
    Loaded: yes("It is loaded.", (tokens: string) => `It is loaded with ${tokens} tokens of context.`),
    Unloaded: no("It is not loaded.", (state: string) => `The router reports it as ${state}.`),
    Loading: no("It is being loaded."),
    LoadFailed: no("Its last load failed."),
    LoadFailing: no(
      "Its loads fail; the message has the engine's last output and the time of the next try.",
      (loads: string, error: string, until: string) =>
        `${loads} failed: ${error}. The next try is not before ${until}.`,
      "Correct its file or its settings; to try again now, call `POST /v1/models/load` or `POST /api/reconcile`.",
    ),
    NotListed: no("The router does not list it."),
    NotObserved: notObserved,
  }),
  Drained: positive(
    "model",
    {
      Drained: yes("Its last change cut no request."),
      DrainTimedOut: no(
        "Its last change cut requests that took longer than `--drain-timeout`.",
        (when: string, count: number, seconds: number) =>
          `Its last change, at ${when}, cut ${count} answer(s) that took longer than the ${seconds} s of --drain-timeout.`,
        "Raise `--drain-timeout`, or make changes while no client chats.",
      ),
    },
    { only: "once a change has waited for its requests" },
  ),
  Reachable: positive("worker", {
    Answering: yes("It answers.", given),
    NotProbed: unknown("It was not probed yet."),
    Refused: no("No process listens on its port.", given, "Start the worker."),
    Unreachable: no("It takes no connection.", given, "Check the network."),
    Unresolvable: no("Its name has no address.", given, "Check the name."),
    NotAnswering: no(
      "It takes connections and does not answer: it hangs, or serves another client.",
      given,
      "Restart the worker.",
    ),
    NotAWorker: no("Another kind of server listens there.", given, "Correct the address."),
    NoDevices: no("It has no device to compute with.", given),
    Duplicate: no("It is another name of a worker on the list.", given, "Remove it from the list."),
    Lost: no("It was lost while a model used it.", given),
    Stabilizing: no("It answers again and is used once it has answered for `--worker-stable`.", given),
    Flapping: no("It was lost three times or more in ten minutes, so it stays out longer.", given),
    PublicAddress: no("Its address is public.", given, "Use a private address, or set `allowPublicWorkers`."),
    Invalid: no("Its name resolves to an address that no machine has.", given, "Correct the name."),
  }),
  InUse: positive("worker", {
    ServesModel: yes("A model uses it.", (model: string) => `${model} uses it.`),
    Idle: no("No model uses it."),
    WaitingForDrain: no("It is back, and is used once all requests under way have finished."),
  }),
};
