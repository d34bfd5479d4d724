// RPC workers, and the engines of speech.
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { StatusBody } from "../client/index.ts";
import type { SpeechKind } from "../plan/observed.ts";
import { choiceProblem } from "../status/speech-choice.ts";
import { Badge, ErrorNote, Field, Section, submitting, useAction, useLoaded, useShell } from "./parts.tsx";

export function Engines(): JSX.Element | null {
  const { status } = useShell().live;
  if (!status) return null;
  return (
    <div class="columns">
      <Roster rpc={status.rpc} />
      <Speech speech={status.speech} />
    </div>
  );
}

function Roster({ rpc }: Pick<StatusBody, "rpc">): JSX.Element {
  const { client, notify } = useShell();
  const { isBusy, error, run } = useAction();
  const [address, setAddress] = useState("");
  const isOn = rpc.mode === "rpc";
  const turn = async (): Promise<void> => {
    const { mode } = await client.rpc.setMode(isOn ? "single" : "rpc");
    notify(mode === "rpc" ? "Models run with the workers" : "Models run on this machine only");
  };
  const add = async (): Promise<void> => {
    await client.rpc.addWorkers([address.trim()]);
    notify(`${address.trim()} is a worker`);
    setAddress("");
  };
  const remove = async (worker: string): Promise<void> => {
    await client.rpc.removeWorkers([worker]);
    notify(`${worker} is no worker any more`);
  };
  return (
    <Section
      title="RPC workers"
      aside={
        <button type="button" disabled={isBusy || (!isOn && rpc.workers.length === 0)} onClick={() => run(turn)}>
          {isOn ? "Turn RPC mode off" : "Turn RPC mode on"}
        </button>
      }
    >
      {rpc.warning !== null && <p class="note warn">{rpc.warning}</p>}
      <ul class="plain">
        {rpc.workers.map(({ address: worker, conditions }) => (
          <li key={worker} class="row spread">
            <span>
              {worker}{" "}
              {conditions.map(({ type, status, reason, message }) => (
                <span key={type} title={message}>
                  <Badge
                    tone={status === "True" ? "good" : status === "False" && type === "Reachable" ? "bad" : "idle"}
                  >
                    {reason}
                  </Badge>{" "}
                </span>
              ))}
            </span>
            <button
              type="button"
              class="quiet"
              disabled={isBusy}
              onClick={() => run(() => remove(worker))}
              aria-label={`Remove ${worker}`}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <form class="row end" onSubmit={submitting(() => run(add))}>
        <Field
          label="Worker, HOST:PORT"
          placeholder="192.168.1.20:50052"
          value={address}
          onValue={setAddress}
          required
        />
        <button type="submit" disabled={isBusy}>
          Add
        </button>
      </form>
      <ErrorNote error={error} />
    </Section>
  );
}

function Speech({ speech }: Pick<StatusBody, "speech">): JSX.Element {
  const { client } = useShell();
  const { transcription, synthesis } = speech;
  // Both lists are there only where speech is on.
  const isOn = transcription !== null || synthesis !== null;
  const voices = useLoaded(async (signal) => (isOn ? client.speech.voices.search("", { signal }) : []), [client, isOn]);
  const models = useLoaded(
    async (signal) => (isOn ? client.speech.transcriptionModels.search("", { signal }) : []),
    [client, isOn],
  );
  return (
    <Section title="Speech">
      <Choice
        key={synthesis?.choice}
        label="Voice (text to speech)"
        engine={synthesis}
        usual="en_US-lessac-medium"
        options={voices.value?.map(({ key }) => key) ?? []}
        kind="synthesis"
        field="voice"
      />
      <Choice
        key={transcription?.choice}
        label="Transcription model (speech to text)"
        engine={transcription}
        usual="ggml-base.en.bin"
        options={models.value?.map(({ path }) => path) ?? []}
        kind="transcription"
        field="model"
      />
      <ErrorNote error={voices.error ?? models.error} />
    </Section>
  );
}

/** An engine starts with the first request. */
function phaseText(engine: ChoiceProps["engine"]): string {
  if (!engine) return "off";
  return engine.phase === "stopped" ? "idle" : engine.phase;
}

interface ChoiceProps {
  readonly label: string;
  readonly engine: StatusBody["speech"]["synthesis"];
  readonly usual: string;
  readonly options: readonly string[];
  readonly kind: SpeechKind;
  readonly field: "voice" | "model";
}

function Choice({ label, engine, usual, options, kind, field }: ChoiceProps): JSX.Element {
  const { client, notify } = useShell();
  const { isBusy, error, run } = useAction();
  const [choice, setChoice] = useState(engine?.choice ?? usual);
  const known = useId();
  const set = (value: string | null): void =>
    run(async () => {
      const change = { speech: { [kind]: value === null ? null : { [field]: value } } };
      const problem = choiceProblem(await client.desired.planPatch(change), kind);
      if (problem !== null) throw new Error(problem);
      await client.desired.patch(change);
      notify(value === null ? `${label}: off` : `${label}: ${value}`);
    });
  return (
    <form class="row end" onSubmit={submitting(() => set(choice.trim()))}>
      <Field label={label} value={choice} onValue={setChoice} list={known} required />
      <datalist id={known}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
      <Badge tone={engine ? (engine.phase === "ready" ? "good" : "idle") : "idle"}>{phaseText(engine)}</Badge>
      <button type="submit" disabled={isBusy}>
        {engine ? "Change" : "Turn on"}
      </button>
      {engine && (
        <button type="button" class="quiet" disabled={isBusy} onClick={() => set(null)}>
          Turn off
        </button>
      )}
      <ErrorNote error={error} />
    </form>
  );
}
