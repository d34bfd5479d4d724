// A plan: every step with what it changes and costs, what is held, and what will not be had.
import type { JSX } from "preact";
import type { PlanBody } from "../client/index.ts";
import { bytesText } from "../core/quantities.ts";

export function Plan({ plan }: { readonly plan: PlanBody }): JSX.Element {
  const { steps, remaining, problems, hub, complete } = plan;
  const isEmpty = steps.length + remaining.length + problems.length === 0;
  return (
    <div class="plan">
      {isEmpty && <p>Nothing to do: the machine is as the document says.</p>}
      <ol class="plain">
        {steps.map((step) => (
          <Step key={step.key} step={step} />
        ))}
        {remaining.map(({ key, kind, message, because }) => (
          <li key={key} class="note warn">
            {kind}: {message} (held: {because})
          </li>
        ))}
        {problems.map(({ subject, message, hint = "" }) => (
          <li key={subject} class="note bad">
            {subject}: {message} <small>{hint}</small>
          </li>
        ))}
      </ol>
      {!complete && <p class="dim">What comes after these steps is not known yet.</p>}
      {[...new Set(hub.unanswered.map(({ why }) => why))].map((why) => (
        <p key={why} class="dim">
          Sizes are not all known: {why}
        </p>
      ))}
      {!isEmpty && <p class="dim">{totalsText(plan)}</p>}
    </div>
  );
}

function Step({ step }: { readonly step: PlanBody["steps"][number] }): JSX.Element {
  const { kind, message, reason, bytes, changes, ends, notBefore, awaits } = step;
  const when = [
    reason,
    ...(notBefore === null ? [] : [`not before ${notBefore}`]),
    ...(awaits === null ? [] : [`waits: ${awaits}`]),
  ];
  return (
    <li>
      <strong>{kind}</strong> {message}
      {bytes !== null && `, ${bytesText(bytes)}`} <small>{when.join(", ")}</small>
      {changes.map(({ subject, field, from, to }) => (
        <div key={`${subject} ${field}`} class="change">
          {subject} {field}: <del>{from ?? "none"}</del> → <ins>{to ?? "none"}</ins>
        </div>
      ))}
      {ends.map(({ model, inFlight }) => (
        <div key={model} class="change">
          ends the instance of {model}
          {inFlight > 0 && `, after ${inFlight} in flight`}
        </div>
      ))}
    </li>
  );
}

function totalsText({ totals }: PlanBody): string {
  const { steps, pull, reload, held, problems } = totals;
  const parts = [
    `${steps} ${steps === 1 ? "step" : "steps"}`,
    ...(pull.count > 0 ? [`${pull.count} to pull (${bytesText(pull.bytes)})`] : []),
    ...(totals.delete.count > 0 ? [`${totals.delete.count} to delete (${bytesText(totals.delete.bytes)})`] : []),
    ...(reload > 0 ? [`${reload} to reload`] : []),
    ...(held > 0 ? [`${held} held`] : []),
    ...(problems > 0 ? [`${problems} that cannot be done`] : []),
  ];
  return `${parts.join(", ")}.`;
}
