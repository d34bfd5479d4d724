// The generations of the document: who made them, what they changed, and the way back.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { HistoryBody } from "../client/index.ts";
import { elapsedText } from "../core/quantities.ts";
import type { Tone } from "./model-row.ts";
import { Ago, Badge, Dialog, ErrorNote, Section, TableHead, useAction, useLoaded, useShell } from "./parts.tsx";
import { Plan } from "./plan.tsx";

type Entry = HistoryBody["entries"][number];

const tones: Readonly<Record<Entry["outcome"], Tone>> = {
  pending: "busy",
  converged: "good",
  stuck: "bad",
  superseded: "idle",
};

export function History(): JSX.Element {
  const { client, live } = useShell();
  const { generation, sync } = live.status ?? {};
  const { value, error } = useLoaded((signal) => client.history.list({ signal }), [client, generation, sync]);
  const [open, setOpen] = useState<number | null>(null);
  return (
    <Section title="History">
      <ErrorNote error={error} />
      <table class="cards">
        <TableHead columns={["Generation", "When", "By", "Changed", "Outcome"]} />
        <tbody>
          {value?.entries.map((entry) => (
            <tr key={entry.generation}>
              <th scope="row">
                <button
                  type="button"
                  class="link"
                  aria-label={`Open generation ${entry.generation}`}
                  onClick={() => setOpen(entry.generation)}
                >
                  {entry.generation}
                </button>
              </th>
              <td data-label="When">
                <Ago at={entry.at} />
              </td>
              <td data-label="By" class="wide">
                {[entry.by, entry.key, entry.file?.revision].filter(Boolean).join(", ")}
              </td>
              <td data-label="Changed" class="wide">
                {entry.fields.join(", ") || "–"}
              </td>
              <td data-label="Outcome" class="wide">
                <Badge tone={tones[entry.outcome]}>{entry.outcome}</Badge>{" "}
                {entry.ms !== null && <small>{elapsedText(entry.ms)}</small>}
                {entry.problem}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {value && value.drifts.length > 0 && (
        <>
          <h3>Changed outside the document</h3>
          <ul class="plain">
            {value.drifts.map(({ at, what, mendedAt }) => (
              <li key={at}>
                <Ago at={at} />: {what.map(({ message }) => message).join("; ")} (
                {mendedAt === null ? "not mended yet" : "mended"})
              </li>
            ))}
          </ul>
        </>
      )}
      {open !== null && (
        <GenerationDialog generation={open} isNow={open === value?.generation} onClose={() => setOpen(null)} />
      )}
    </Section>
  );
}

interface GenerationDialogProps {
  readonly generation: number;
  readonly isNow: boolean;
  readonly onClose: () => void;
}

function GenerationDialog({ generation, isNow, onClose }: GenerationDialogProps): JSX.Element {
  const { client, notify } = useShell();
  const shown = useLoaded((signal) => client.history.get(generation, { signal }), [client, generation]);
  const plan = useLoaded(
    async (signal) => (isNow ? null : client.history.planRollback(generation, { signal })),
    [client, generation, isNow],
  );
  const { isBusy, error, run } = useAction();
  const rollback = async (): Promise<void> => {
    const { generation: made } = await client.history.rollback(generation);
    notify(`Rolled back: generation ${made} has the document of generation ${generation}`);
  };
  return (
    <Dialog title={`Generation ${generation}`} onClose={onClose}>
      {(close) => (
        <>
          <h3>What it changed</h3>
          <ul class="plain diff">
            {shown.value?.changes.map(({ field, before, after }) => (
              <li key={field}>
                <strong>{field}</strong>
                {before !== undefined && <del>{valueText(before)}</del>}
                {after !== undefined && <ins>{valueText(after)}</ins>}
              </li>
            ))}
          </ul>
          {shown.value?.changes.length === 0 && <p class="dim">Nothing.</p>}
          {plan.value && (
            <>
              <h3>Plan of a rollback</h3>
              <Plan plan={plan.value} />
              <button
                type="button"
                disabled={isBusy}
                onClick={() =>
                  run(async () => {
                    await rollback();
                    close();
                  })
                }
              >
                Roll back to generation {generation}
              </button>
            </>
          )}
          <ErrorNote error={error ?? shown.error ?? plan.error} />
        </>
      )}
    </Dialog>
  );
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}
