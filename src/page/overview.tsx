// The first screen: how it stands, what needs a hand, the models, what happens and what has happened.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { StatusBody } from "../client/index.ts";
import { memoryText } from "../core/memory-text.ts";
import { bytesText } from "../core/quantities.ts";
import { attentionIn } from "../status/attention.ts";
import { Engines } from "./engines.tsx";
import { Memory } from "./memory.tsx";
import { Models } from "./models.tsx";
import { Ago, Section, useLoaded, useShell } from "./parts.tsx";
import { PullDialog } from "./pull.tsx";
import { Requests } from "./requests.tsx";
import { TransferBar } from "./transfer-bar.tsx";

export function Overview(): JSX.Element | null {
  const { client, live } = useShell();
  const { status } = live;
  const [isPulling, setPulling] = useState(false);
  const [previewed, setPreviewed] = useState<string | null>(null);
  // Its sums change with the files, and these with the models.
  const files = status?.models.map(({ id, runtime }) => `${id} ${runtime?.bytes ?? 0}`).join();
  const { value: disk } = useLoaded((signal) => client.disk.report({ signal }), [client, files]);
  if (!status) return null;
  return (
    <>
      <Banner status={status} />
      <Counts status={status} freeBytes={disk?.totals.freeBytes ?? null} modelBytes={disk?.totals.modelBytes ?? null} />
      <Attention status={status} />
      <Memory previewed={previewed} />
      <Section
        title="Models"
        aside={
          <button type="button" onClick={() => setPulling(true)}>
            Pull a model
          </button>
        }
      >
        <Models disk={disk} onPreview={setPreviewed} />
      </Section>
      {isPulling && <PullDialog onClose={() => setPulling(false)} />}
      <div class="columns">
        <UnderWay running={status.running} />
        <Requests />
        <Activity />
      </div>
      <Engines />
    </>
  );
}

function Banner({ status }: { readonly status: StatusBody }): JSX.Element {
  const { gateway, conditions, health, sync } = status;
  const ready = conditions.find(({ type }) => type === "Ready");
  const healthy = conditions.find(({ type }) => type === "Healthy");
  const isWell = healthy?.status === "True";
  const tone = !gateway.ready ? "bad" : !isWell ? "warn" : health === "Progressing" ? "busy" : "good";
  const told = !gateway.ready ? ready : isWell ? undefined : healthy;
  return (
    <section class={`banner ${tone}`} aria-label="State of the gateway">
      <strong>{!gateway.ready ? "Not ready" : isWell ? "Ready" : "Ready, with problems"}</strong>
      <span>
        {told?.message ??
          `${health}, ${sync === "Synced" ? "everything is as the document says" : "changes are being applied"}.`}
      </span>
      <small>
        Version {gateway.version}, started <Ago at={gateway.startedAt} />, generation {status.generation}
      </small>
    </section>
  );
}

interface CountsProps {
  readonly status: StatusBody;
  readonly freeBytes: number | null;
  readonly modelBytes: number | null;
}

function Counts({ status, freeBytes, modelBytes }: CountsProps): JSX.Element {
  const { models, inFlight, waiting, running } = status;
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
  const memory = sum(models.map(({ runtime }) => runtime?.memoryBytes ?? 0));
  const counts: readonly (readonly [name: string, value: string])[] = [
    ["models", String(models.length)],
    [
      "loaded",
      String(
        models.filter(({ runtime }) => runtime !== undefined && runtime !== null && runtime.state !== "unloaded")
          .length,
      ),
    ],
    ["in flight", String(sum(Object.values(inFlight)))],
    ["queued", String(sum(waiting.map(({ requests }) => requests)))],
    ["under way", String(running.length)],
    ["memory in use", memory === 0 ? "–" : memoryText(memory)],
    ["on disk", modelBytes === null ? "–" : bytesText(modelBytes)],
    ["free on disk", freeBytes === null ? "–" : bytesText(freeBytes)],
  ];
  return (
    <dl class="counts">
      {counts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Attention({ status }: { readonly status: StatusBody }): JSX.Element | null {
  const matters = attentionIn(status);
  if (matters.length === 0) return null;
  return (
    <Section title="Needs attention">
      <ul class="matters">
        {matters.map(({ subject, what, message, since }) => (
          <li key={`${subject} ${what} ${message}`} class={since === null ? "note warn" : "note bad"}>
            <strong>
              {subject} {what}
            </strong>
            {since !== null && (
              <small>
                <Ago at={since} />
              </small>
            )}
            <p>{message}</p>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function UnderWay({ running }: Pick<StatusBody, "running">): JSX.Element | null {
  if (running.length === 0) return null;
  return (
    <Section title="Under way">
      <ul class="plain">
        {running.map(({ key, message, startedAt, progress }) => (
          <li key={key}>
            {message} {startedAt === null ? <small>queued</small> : null}
            {progress && <TransferBar label={message} progress={progress} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Activity(): JSX.Element {
  const { activity } = useShell().live;
  return (
    <Section title="Recent activity">
      {activity.length === 0 && <p class="dim">Nothing yet.</p>}
      <ol class="plain activity">
        {activity.slice(0, 12).map(({ id, at, text, isFailure }) => (
          <li key={id} class={isFailure ? "failed" : ""}>
            <span>{text}</span>{" "}
            <small>
              <Ago at={at} />
            </small>
          </li>
        ))}
      </ol>
    </Section>
  );
}
